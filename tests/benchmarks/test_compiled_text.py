"""What compiled programs do, read from texts written by hand: loops as a TPU and as a GPU have them, and others."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks.chips import CHIPS, limits
from benchmarks.compiled_text import Loop, bytes_of, cost_of
from benchmarks.flops import Work, work_of

# 10 turns, as the condition says; each starts a fusion that reads 8 of 80 columns, and a loop of 3 turns with a copy
NESTED = """
HloModule jit_f, is_scheduled=true

%slice_of (p.0: s8[100,80], p.1: s32[]) -> f32[100] {
  %p.0 = s8[100,80]{1,0:T(8,128)(4,1)} parameter(0)
  %p.1 = s32[]{:T(128)} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  %some = s8[100,8]{1,0:T(8,128)(4,1)} dynamic-slice(%p.0, %zero, %p.1), dynamic_slice_sizes={100,8}
  ROOT %sum = f32[100]{0:T(128)} reduce(%some, %zero), dimensions={1}, to_apply=%add
}

%inner_condition (c: (s32[], f32[100])) -> pred[] {
  %c = (s32[]{:T(128)}, f32[100]{0:T(128)}) parameter(0)
  ROOT %lt.2 = pred[] compare(%c, %c), direction=LT
}

%inner_body (b: (s32[], f32[100])) -> (s32[], f32[100]) {
  %b = (s32[]{:T(128)}, f32[100]{0:T(128)}) parameter(0)
  %at.2 = s32[]{:T(128)} get-tuple-element(%b), index=0
  %x = f32[100]{0:T(128)} get-tuple-element(%b), index=1
  %copied = f32[100]{0:T(128)} copy(%x), backend_config={"window_config":{"estimated_cycles":"7"}}
  ROOT %inner_next = (s32[]{:T(128)}, f32[100]{0:T(128)}) tuple(%at.2, %copied)
}

%condition (c.1: (s32[], s8[100,80], f32[100])) -> pred[] {
  %c.1 = (s32[]{:T(128)}, s8[100,80]{1,0:T(8,128)(4,1)}, f32[100]{0:T(128)}) parameter(0)
  %last = s32[]{:T(128)} constant(10)
  %at = s32[]{:T(128)} get-tuple-element(%c.1), index=0
  ROOT %lt = pred[]{:T(512)} compare(%at, %last), direction=LT
}

%body (b.1: (s32[], s8[100,80], f32[100])) -> (s32[], s8[100,80], f32[100]) {
  %b.1 = (s32[]{:T(128)}, s8[100,80]{1,0:T(8,128)(4,1)}, /*index=2*/f32[100]{0:T(128)}) parameter(0)
  %at.1 = s32[]{:T(128)} get-tuple-element(%b.1), index=0
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)} add(%at.1, %one)
  %all = s8[100,80]{1,0:T(8,128)(4,1)} get-tuple-element(%b.1), index=1
  %f = f32[100]{0:T(128)} fusion(%all, %at.1), kind=kLoop, calls=%slice_of, backend_config={"estimated_cycles":"100"}
  %begun = (s32[]{:T(128)}, f32[100]{0:T(128)}) tuple(%at.1, %f)
  %w = (s32[]{:T(128)}, f32[100]{0:T(128)}) while(%begun), condition=%inner_condition, body=%inner_body, KNOWN
  %y = f32[100]{0:T(128)} get-tuple-element(%w), index=1
  ROOT %again = (s32[]{:T(128)}, s8[100,80]{1,0:T(8,128)(4,1)}, f32[100]{0:T(128)}) tuple(%next, %all, %y)
}

ENTRY %main (responses: s8[100,80]) -> f32[100] {
  %responses = s8[100,80]{1,0:T(8,128)(4,1)} parameter(0)
  %zero.1 = s32[]{:T(128)} constant(0)
  %start = s32[]{:T(128)} copy(%zero.1)
  %buffer = f32[100]{0:T(128)} custom-call(), custom_call_target="AllocateBuffer"
  %t = (s32[]{:T(128)}, s8[100,80]{1,0:T(8,128)(4,1)}, f32[100]{0:T(128)}) tuple(%start, %responses, %buffer)
  %loop = (s32[]{:T(128)}, s8[100,80]{1,0:T(8,128)}, f32[100]{0:T(128)}) while(%t), condition=%condition, body=%body
  %result = f32[100]{0:T(128)} get-tuple-element(%loop), index=2
  %sums = f32[100]{0:T(128)} all-reduce(%result), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
  %alone = f32[100]{0:T(128)} all-reduce(%result), channel_id=2, replica_groups={{0},{1}}, to_apply=%add
  ROOT %end = f32[100]{0:T(128)} negate(%sums), backend_config={"estimated_cycles":"1000"}
}
"""
KNOWN = 'backend_config={"known_trip_count":{"n":"3"}}'


def test_loops_are_multiplied():
    cost = cost_of(NESTED.replace("KNOWN", KNOWN))
    assert cost.cycles == 1000 + 10 * (100 + 3 * 7)
    assert cost.kernels == 1 + 10 * (1 + 3)
    # the end reads and writes 400 bytes; a fusion reads 800 and where they are, and writes 400; a copy does 400 twice
    assert cost.bytes == 800 + 10 * (1204 + 3 * 800)
    assert cost.unestimated == 0
    assert (cost.collectives, cost.collective_bytes) == (1, 400)
    assert cost.unknown_loops == 0
    assert set(cost.loops) == {Loop(10, 1), Loop(30, 1)}
    assert cost.busiest_loop() == Loop(30, 1)


def test_loops_whose_turns_the_data_tell_count_once():
    cost = cost_of(NESTED.replace(", KNOWN", ""))
    assert cost.unknown_loops == 1
    assert cost.cycles == 1000 + 10 * (100 + 7)


@pytest.mark.parametrize(
    ("was", "is_now"),
    [("add(%at.1, %one)", "multiply(%at.1, %one)"), ("direction=LT,", ""), ("constant(10)", "constant(maybe)")],
)
def test_turns_are_not_guessed(was, is_now):
    text = NESTED.replace("KNOWN", KNOWN)
    if was == "direction=LT,":
        was, is_now = "compare(%at, %last), direction=LT", "compare(%at, %last), direction=NE"
    assert was in text
    assert cost_of(text.replace(was, is_now)).unknown_loops == 1


def test_steps_of_two():
    text = NESTED.replace("KNOWN", KNOWN).replace("constant(1)", "constant(2)")
    assert Loop(5, 1) in cost_of(text).loops


def test_the_dearest_branch_counts():
    text = """
%cheap (a: f32[10]) -> f32[10] {
  %a = f32[10]{0} parameter(0)
  ROOT %n = f32[10]{0} negate(%a)
}

%dear (b: f32[10]) -> f32[10] {
  %b = f32[10]{0} parameter(0)
  %m = f32[10]{0} negate(%b)
  ROOT %o = f32[10]{0} negate(%m)
}

ENTRY %main (x: f32[10], i: s32[]) -> f32[10] {
  %x = f32[10]{0} parameter(0)
  %i = s32[] parameter(1)
  ROOT %c = f32[10]{0} conditional(%i, %x, %x), branch_computations={%cheap, %dear}
}
"""
    cost = cost_of(text)
    assert (cost.kernels, cost.bytes, cost.unestimated) == (2, 160, 160)


def test_what_is_updated_in_place_is_not_written_whole():
    text = """
%update (p: f32[1000,10], q: f32[1,10], i: s32[]) -> f32[1000,10] {
  %p = f32[1000,10]{1,0} parameter(0)
  %q = f32[1,10]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %new = f32[1000,10]{1,0} dynamic-update-slice(%p, %q, %i, %i)
}

ENTRY %main (x: f32[1000,10], y: f32[1,10], j: s32[]) -> f32[1000,10] {
  %x = f32[1000,10]{1,0} parameter(0)
  %y = f32[1,10]{1,0} parameter(1)
  %j = s32[] parameter(2)
  ROOT %f = f32[1000,10]{1,0} fusion(%x, %y, %j), kind=kLoop, calls=%update
}
"""
    assert cost_of(text).bytes == 2 * 40 + 4


def test_bytes_within_the_chip_are_not_of_its_memory():
    assert bytes_of("(f32[3,4]{1,0:T(8,128)}, s8[5]{0:T(1024)S(1)}, pred[])") == 48 + 1
    assert bytes_of("(f32[3,4]{1,0:T(8,128)}, s8[5]{0:T(1024)S(1)})", everywhere=True) == 48 + 5


def test_work_of_loops_and_branches():
    def program(x, flag):
        x = jax.lax.scan(lambda x, _: (jnp.tanh(x @ x) + 1, None), x, length=5)[0]
        return jax.lax.cond(flag, lambda x: x, lambda x: jnp.exp(x), x)

    traced = jax.jit(program).trace(jnp.ones((4, 4)), True)
    work = work_of(traced.jaxpr.jaxpr)
    assert work.products == 5 * 2 * 4**3
    assert work.transcendental == (5 + 1) * 16
    # the sums of 5 turns; what chooses the branch is a number or two
    assert 5 * 16 <= work.elementwise <= 5 * 16 + 3


def test_limits():
    chip = CHIPS["v5e"]
    found = limits(chip, Work(products=197 * 10**12, transcendental=10**9), 819e9, "bfloat16")
    assert found["memory"] == found["products"] == pytest.approx(1)
    assert found["transcendental"] == pytest.approx(1e9 / (1024 * chip.clock))
    assert chip.clock == pytest.approx(1.5e9, rel=0.01)
    assert CHIPS["v5p"].clock == pytest.approx(1.75e9, rel=0.01)
