"""What tasks there are, and what they are read from; commands list it without loading JAX."""

from irtjax.storage.sources import TABS

# by task, in TensorFlow Datasets
DATASETS = {"mnist": "mnist", "cifar10": "cifar10", "sst2": "glue/sst2", "snli": "snli"}
TASKS = ("digits", *DATASETS)

JSON = (".jsonl", ".ndjson", ".json")
CSV = (".csv", TABS)
ENDINGS = (*CSV, *JSON, ".parquet")  # of tables of examples

ID_COLUMNS = ("item_id", "phrase_id", "pair_id")
LABEL_COLUMNS = ("label", "gold_label")
TEXT_COLUMNS = {1: ("text",), 2: ("premise", "hypothesis")}  # by the number of sentences

VECTORS = ("ppmi", "random")  # of words, where no file has them
