"""How able is a model, from few items? Score prediction, small forms of benchmarks, adaptive tests."""
