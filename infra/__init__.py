"""Everything that installs, starts and ships Parley. No product code lives here."""
