"""Office documents of before 2007: records in OLE containers, read by hand for their text and structure."""
