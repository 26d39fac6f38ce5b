"""What a fit is: what it reads, holds, says and writes."""
