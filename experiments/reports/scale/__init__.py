"""What `experiments.build_scale` writes: tables, pictures, and a report in prose."""
