"""One widget per file. Widgets show values that they are given, and count nothing."""
