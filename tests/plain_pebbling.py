"""Random graphs, and the least words of the game by trying every single move: no pruning at all."""

from collections import deque

from pebble.cdag import Cdag


def random_graph(random, most=8):
    """A graph of 3 to ``most`` vertices; outputs may have successors, and vertices be of no use."""
    count = random.randint(3, most)
    inputs = random.randint(1, min(4, count - 1))
    density = random.choice((0, 0, 1))
    predecessors = [()] * inputs
    for vertex in range(inputs, count):
        # Late operands make chains, which the search treats apart.
        near = range(max(0, vertex - 3), vertex)
        pool = near if random.random() < 0.5 else range(vertex)
        wanted = random.randint(1, 2 + density)
        predecessors.append(tuple(random.sample(pool, min(wanted, len(pool)))))
    inner = range(inputs, count)
    outputs = {count - 1, *random.sample(inner, random.randint(1, min(3, len(inner))))}
    if random.random() < 0.1:
        predecessors.append(())  # a constant
        outputs.add(count)
    return Cdag(tuple(predecessors), tuple(sorted(outputs)))


def plain_least_io(graph, capacity, *, sliding=False, recomputation=True):
    """Least words by breadth-first search over (red, blue, computed), one move at a time."""
    inputs, wanted = frozenset(graph.inputs), frozenset(graph.outputs)
    start = (frozenset(), inputs, frozenset())
    todo, done = deque([(0, start)]), set()
    while todo:
        words, state = todo.popleft()
        if state in done:
            continue
        done.add(state)
        red, blue, computed = state
        if wanted <= blue:
            return words
        room = len(red) < capacity
        for v, operands in enumerate(graph.predecessors):
            if v in red:
                todo.appendleft((words, (red - {v}, blue, computed)))
                if v not in blue:
                    todo.append((words + 1, (red, blue | {v}, computed)))
                continue
            if v in blue and room:
                todo.append((words + 1, (red | {v}, blue, computed)))
            if v in inputs or not red.issuperset(operands):
                continue
            if not recomputation and v in computed:
                continue
            # Without the rule, the history need not be told apart.
            history = computed if recomputation else computed | {v}
            if room:
                todo.appendleft((words, (red | {v}, blue, history)))
            if sliding:
                for p in operands:
                    todo.appendleft((words, (red - {p} | {v}, blue, history)))
    return None
