"""What lasts: runs, profiles and chats, in one SQLite file in the data folder."""
