"""PDF by PDFium's C interface: pages as typed elements, and page images. Runs in the child only."""
