"""Exact red-blue pebbling of tiny graphs by A*, the oracle of the bounds' tests.

Loads and stores cost 1, computing and discarding nothing; recomputation is allowed; inputs start
blue, outputs must end blue; a computed vertex needs a free red pebble beside its operands.
"""

import heapq
from itertools import count


def mac_chain(terms):
    """Predecessors and outputs of one vertex a multiply-accumulate, chained along each output."""
    ids, preds, outputs = {}, [], []

    def leaf(key):
        if key not in ids:
            ids[key] = len(preds)
            preds.append(())
        return ids[key]

    for macs in terms.values():
        last = None
        for a, b in macs:
            operands = (leaf(a), leaf(b)) + (() if last is None else (last,))
            preds.append(operands)
            last = len(preds) - 1
        outputs.append(last)
    return preds, outputs


def exact_io(preds, outputs, capacity):
    """Least loads plus stores with ``capacity`` red pebbles."""
    vertices = range(len(preds))
    needs = [sum(1 << p for p in operands) for operands in preds]
    leaves = sum(1 << v for v in vertices if not preds[v])
    wanted = sum(1 << v for v in outputs)

    def remaining(red, blue):
        """Stores still due, and the inputs that the vertices below them force to be loaded."""
        loads, seen, todo = 0, 0, wanted & ~blue
        stores = todo.bit_count()
        todo &= ~red
        while todo:
            vertex = todo & -todo
            todo ^= vertex
            seen |= vertex
            operands = needs[vertex.bit_length() - 1] & ~red
            loads |= operands & leaves
            todo |= operands & ~leaves & ~blue & ~seen
        return stores + loads.bit_count()

    def moves(red, blue):
        full = red.bit_count() >= capacity

        def placed(vertex, keep):
            if not full:
                return [red | 1 << vertex]
            return [
                red & ~(1 << old) | 1 << vertex
                for old in vertices
                if red >> old & 1 and not keep >> old & 1
            ]

        for v in vertices:
            if red >> v & 1:
                if not blue >> v & 1:
                    yield red, blue | 1 << v, 1
                continue
            if blue >> v & 1:
                for after in placed(v, 0):
                    yield after, blue, 1
            if preds[v] and not needs[v] & ~red:
                for after in placed(v, needs[v]):
                    yield after, blue, 0

    tie = count()
    best = {(0, leaves): 0}
    heap = [(remaining(0, leaves), next(tie), 0, 0, leaves)]
    while heap:
        _, _, cost, red, blue = heapq.heappop(heap)
        if best[red, blue] < cost:
            continue
        if not wanted & ~blue:
            return cost
        for after, stored, price in moves(red, blue):
            total = cost + price
            if total < best.get((after, stored), 1 << 60):
                best[after, stored] = total
                estimate = total + remaining(after, stored)
                heapq.heappush(heap, (estimate, next(tie), total, after, stored))
    return None
