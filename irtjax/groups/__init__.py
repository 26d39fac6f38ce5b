"""Whether items measure the same for groups of subjects, and how tests of different groups come to one scale."""
