"""Files that are whole or absent, and arrays kept between runs."""
