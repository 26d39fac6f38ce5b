"""Reports: Markdown and pictures made from the files of a run."""
