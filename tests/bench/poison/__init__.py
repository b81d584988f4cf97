"""Files that mean harm, made by code, and the judge of what reading them does."""
