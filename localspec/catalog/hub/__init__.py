"""The Hugging Face Hub: what it offers, headers read from afar, and downloads. Only here is the network used."""
