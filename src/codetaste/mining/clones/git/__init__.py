"""What git prints, read as a stream in bounded memory."""
