"""What the binaries share: flags, run directories, progress bars."""
