"""Words: the tokeniser, the vocabulary, padding and buckets, on sentences that can be followed by hand."""

import itertools

import numpy as np
import pytest

from irtjax import InputError
from irtjax.tasks import text
from irtjax.tasks.task import PADDING, UNKNOWN


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("It's a MOVIE, isn't it?", "it 's a movie , is n't it ?"),
        ("it 's a movie , is n't it ?", "it 's a movie , is n't it ?"),  # SST is in this form already
        ("can't won't we'll they've I'm he'd", "ca n't wo n't we 'll they 've i 'm he 'd"),
        ("O’Neil’s “well-made” film", "o'neil 's \" well-made \" film"),
        ("`` quoted '' -LRB- aside -rrb-", '" quoted " ( aside )'),
        ("Mr. Smith left at 12:30 for $10,000...", "mr. smith left at 12:30 for $ 10,000 ..."),
        ("the U.S. of 3.5%; and/or", "the u.s. of 3.5 % ; and/or"),
        ("stop!! -- what?!", "stop !! -- what ? !"),
        ("clichés cliche\u0301s", "clichés clichés"),  # composed or not
        ("one,two", "one , two"),
        (" \n", ""),
        ("电影非常好看，推荐iPhone手机2.5元", "电 影 非 常 好 看 , 推 荐 iphone 手 机 2.5 元"),
        ("東京タワーはスーパーです。", "東 京 タ ワー は ス ー パー で す 。".replace("ス ー", "スー")),
        ("ที่นี่สวย ครับ", "ที่ นี่ ส ว ย ค รั บ"),  # marks stay with their letter
        ("हिन्दी में, don't", "हिन्दी में , do n't"),
        ("안녕하세요 여러분", "안녕하세요 여러분"),
    ],
)
def test_tokeniser(sentence, words):
    assert text.tokenise(sentence) == words.split()


def make(*sentences):
    lexicon = {}
    return text.number_words(sentences, lexicon), lexicon


def test_words_are_numbered_as_they_appear():
    words, lexicon = make("b a", "", "a b", "b a")
    assert list(lexicon) == ["b", "a"]
    assert list(words.numbers) == [0, 1, 1, 0, 0, 1]
    assert list(words.lengths) == [2, 0, 2, 2]


def test_vocabulary_is_by_count_then_alphabet_and_of_the_training_text_alone():
    lexicon = {}
    train = text.number_words(["c c c b a", "a b d"], lexicon)
    text.number_words(["e e e e"], lexicon)  # another split
    assert text.choose_vocabulary([train], lexicon, 2) == ["c", "a", "b"]
    assert text.choose_vocabulary([train], lexicon, 1) == ["c", "a", "b", "d"]
    assert text.choose_vocabulary([train, train], lexicon, 2) == ["c", "a", "b", "d"]


def test_padding_stands_at_the_end_and_no_row_is_all_padding():
    words, lexicon = make("a b c", "", "x a")
    table = text.lookup_table(lexicon, [*text.SPECIAL, "a", "b", "c"])
    rows = text.pad(words, table, 4)
    np.testing.assert_array_equal(
        rows, [[2, 3, 4, PADDING], [UNKNOWN, PADDING, PADDING, PADDING], [UNKNOWN, 2, PADDING, PADDING]]
    )
    assert rows.dtype == np.uint8
    assert text.lookup_table(lexicon, range(300)).dtype == np.uint16
    assert text.decode([rows, rows[::-1]], [*text.SPECIAL, "a", "b", "c"])[0] == "a b c / <unknown> a"


def test_a_word_spelled_like_padding_is_unknown():
    table = text.lookup_table({"<padding>": 0, "a": 1}, [*text.SPECIAL, "a"])
    assert list(table) == [UNKNOWN, 2]


def test_buckets_are_even_quantiles_and_the_last_holds_everything():
    words = text.Words(np.zeros(0, np.int32), np.arange(1, 101))
    assert text.choose_buckets([words], [131]) == ((26,), (50,), (76,), (90,), (98,), (132,))
    short = text.Words(np.zeros(0, np.int32), np.full(10, 3))
    assert text.choose_buckets([words, short], [100, 7])[-1] == (100, 8)
    assert text.choose_buckets([short], [3]) == ((4,),)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 20])
def test_no_choice_of_lengths_pads_less(count):
    lengths = np.array([1, 1, 2, 4, 4, 4, 5, 7, 7, 9])
    longest = 10

    def padded(ends):
        return np.array(ends)[np.searchsorted(ends, lengths)].sum()

    found = [end for (end,) in text.least_padded(lengths, longest, count)]
    choices = itertools.combinations(range(1, longest), min(count, longest) - 1)
    assert found[-1] == longest
    assert len(found) <= count
    assert padded(found) == min(padded([*inner, longest]) for inner in choices)


def test_lengths_that_no_row_has_are_not_batched_at():
    assert text.least_padded(np.full(10, 3), 3) == ((3,),)
    assert text.least_padded(np.full(10, 3), 66) == ((3,), (66,))  # some row of another split has 66
    assert text.least_padded(np.array([0, 0, 4]), 4) == ((1,), (4,))


def test_bucket_of_is_the_smallest_that_holds_all_sentences():
    premise = np.array([[2, 0, 0, 0], [2, 2, 0, 0], [2, 2, 2, 0], [2, 0, 0, 0]])
    hypothesis = np.array([[3, 0, 0], [3, 0, 0], [3, 0, 0], [3, 3, 3]])
    found = text.bucket_of((premise, hypothesis), ((1, 2), (2, 2), (4, 3)))
    assert found.dtype == np.uint8
    assert list(found) == [0, 1, 2, 2]
    with pytest.raises(InputError, match="a sentence of 3 words does not fit the last bucket, of 2"):
        text.bucket_of((premise,), ((1,), (2,)))
