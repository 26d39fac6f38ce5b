"""Tables of packages that are not installed, by the protocols that they have."""

import pyarrow


class Streamed:
    """A table that others read by Arrow's protocol alone."""

    def __init__(self, frame):
        self.table = pyarrow.table(frame)
        self.columns = self.table.column_names

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Polars(Streamed):
    """A table that `to_pandas` makes one of pandas from, unless a package is missing."""

    def __init__(self, frame, error=None):
        super().__init__(frame)
        self.error = error

    def __array__(self, dtype=None, copy=None):
        return self.table.to_pandas().to_numpy(dtype)

    def to_pandas(self):
        if self.error is not None:
            raise self.error
        return self.table.to_pandas()
