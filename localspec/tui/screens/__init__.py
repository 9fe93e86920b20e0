"""One screen per file, with its style sheet beside it."""
