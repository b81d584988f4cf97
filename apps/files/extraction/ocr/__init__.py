"""Recognition of text in pictures of pages: tesseract where it is installed, rapidocr's packaged models else."""
