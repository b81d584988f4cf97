"""What happens to a file besides being read: its limits, the receipt of its removal, and the search for leftovers."""
