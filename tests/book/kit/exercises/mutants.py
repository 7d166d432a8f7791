"""Wrong solutions made by rules: a reference with one thing in it changed.

The changes are those that slips make: a bound one too far, < for <=, plus for minus, another axis, an
argument that is not looked at, two that are exchanged, a maximum over everything, a call or a line left out.
A mutant that computes what the reference computes on every input is no mistake: `equivalent.py` lists these.
"""

import ast
import copy
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tformer_book.kit.exercises import Exercise
from tformer_book.kit.exercises.checker import answers

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
OPERATORS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
}
NAMES = {
    "max": "min", "min": "max", "amax": "amin", "amin": "amax", "sum": "mean", "mean": "sum", "triu": "tril",
    "tril": "triu", "sin": "cos", "cos": "sin", "exp": "log", "argmax": "argmin", "cumsum": "cumprod",
    "log2": "log", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any",
}  # fmt: skip
LEFT_OUT = {
    "abs", "clamp", "exp", "flip", "log", "masked_fill", "mT", "round", "sigmoid", "sqrt", "square",
    "softmax", "T", "tanh", "transpose", "log_softmax", "ceil", "floor", "sort", "sorted", "tril",
    "triu", "float",
}  # fmt: skip


SYMMETRIC = {"max", "min", "maximum", "minimum", "logaddexp", "isclose", "transpose"}  # in their arguments


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BinOp):
        for other in OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, other(), node.right)
        if isinstance(node.op, ast.MatMult):
            yield ast.BinOp(node.right, ast.MatMult(), node.left)
        yield from (node.left, node.right)  # a factor or a term is forgotten
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield from (ast.Constant(node.value + step) for step in (1, -1))
        elif isinstance(node.value, float) and node.value:
            yield from (ast.Constant(node.value * factor) for factor in (2.0, 0.5))
    elif isinstance(node, ast.Call):
        yield from calls(node)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.For | ast.While):
        yield ast.Pass()  # the line is left out
        if isinstance(node, ast.If):
            yield from (ast.If(ast.Constant(value), node.body, node.orelse) for value in (True, False))
    elif isinstance(node, ast.Slice) and node.lower is not None and node.upper is not None:
        yield from (ast.Slice(node.lower), ast.Slice(None, node.upper))
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and 1 < len(node.elts) < 4:
        for i in range(len(node.elts) - 1):
            yield ast.Tuple([*node.elts[:i], *node.elts[i : i + 2][::-1], *node.elts[i + 2 :]], node.ctx)


def calls(node: ast.Call) -> Iterator[ast.AST]:
    """Another function, no function, or one argument less."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in NAMES:
        other = copy.deepcopy(function)
        setattr(other, "attr" if isinstance(function, ast.Attribute) else "id", NAMES[name])
        yield ast.Call(other, node.args, node.keywords)
    if name in LEFT_OUT and isinstance(function, ast.Attribute) and not is_module(function.value):
        yield function.value
    elif name in LEFT_OUT and node.args:
        yield node.args[0]
    for i in range(0 if name in SYMMETRIC else len(node.args) - 1):
        yield ast.Call(
            function, [*node.args[:i], *node.args[i : i + 2][::-1], *node.args[i + 2 :]], node.keywords
        )
    for i, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "dtype", "device", "strict", "key", "generator"):
            yield ast.Call(function, node.args, node.keywords[:i] + node.keywords[i + 1 :])


def is_module(node: ast.AST) -> bool:
    """Whether it is `torch`, `math` or the like, of which nothing can be left."""
    return isinstance(node, ast.Name) and node.id in ("torch", "math", "F", "np", "nn", "random", "itertools")


def mutants(exercise: Exercise) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each mutant of the reference with what was changed, "before -> after"."""
    source = textwrap.dedent(inspect.getsource(exercise.reference))
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef), f"the reference of {exercise.name} is no plain function"
    function.decorator_list, function.returns = [], None
    for argument in function.args.args:
        argument.annotation = None
    first = function.body[1:] if ast.get_docstring(function) else function.body
    told: Counter = Counter()
    for statement in first:
        for node in looked_at(statement):
            for other in changes(node):
                change = what(node, other)
                if ast.dump(node) == ast.dump(other):
                    continue
                told[change] += 1  # the second of a kind is called so
                number = f" #{told[change]}" if told[change] > 1 else ""
                yield change + number, built(exercise, tree, node, other)
    for place, name in enumerate(exercise.parameters):
        yield f"{name} is not looked at", with_fixed(exercise, place)


def looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes from here down, without what strict= says."""
    if not (isinstance(node, ast.keyword) and node.arg == "strict"):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from looked_at(child)


def with_fixed(exercise: Exercise, place: int) -> Callable[..., Any]:
    """The reference with one argument as it is in the first input, whatever it is."""
    fixed = answers(exercise)[0].case[place]
    return lambda *given: exercise.reference(*given[:place], copy.deepcopy(fixed), *given[place + 1 :])


def what(node: ast.AST, other: ast.AST) -> str:
    """The change in words."""
    before, after = (ast.unparse(x).splitlines()[0] for x in (node, other))
    return f"{before} -> {after}"


def built(exercise: Exercise, tree: ast.Module, node: ast.AST, other: ast.AST) -> Callable[..., Any]:
    """The reference with `other` in the place of `node`."""
    fields = [(parent, field, value) for parent in ast.walk(tree) for field, value in ast.iter_fields(parent)]
    for parent, field, value in fields:
        if value is node:
            setattr(parent, field, other)
            try:
                return compiled(exercise, copy.deepcopy(tree))
            finally:
                setattr(parent, field, node)
        if isinstance(value, list) and any(item is node for item in value):
            place = next(i for i, item in enumerate(value) if item is node)
            value[place] = other
            try:
                return compiled(exercise, copy.deepcopy(tree))
            finally:
                value[place] = node
    raise AssertionError("the node is not in the tree")


def compiled(exercise: Exercise, tree: ast.Module) -> Callable[..., Any]:
    """The function, among the names of the reference's module."""
    scope = dict(exercise.reference.__globals__)
    exec(compile(ast.fix_missing_locations(tree), f"<mutant of {exercise.name}>", "exec"), scope)
    return scope[exercise.reference.__name__]
