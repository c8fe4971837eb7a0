// Kicks and drifts as an argument of kernels, compiled with -DMOST_MOVES.

#pragma once

enum Action { KICK, DRIFT, FORCE };  // ACTIONS of nbody/stages.py

// Kicks and drifts, as an argument of a kernel: from there they are read without waiting.
// `copied_after` is the number of moves after which a step ends and the motion is copied, or -1.
struct Moves {
    int number, copied_after, actions[MOST_MOVES];
    double lengths[MOST_MOVES];
};

// One coordinate of a body, and its velocity.
struct Motion { double x, v; };

__device__ inline Motion moved_once(Motion body, double a, const Moves &moves, int k) {
    if (moves.actions[k] == KICK) body.v = fma(moves.lengths[k], a, body.v);
    if (moves.actions[k] == DRIFT) body.x = fma(moves.lengths[k], body.v, body.x);
    return body;
}

__device__ inline Motion moved(Motion body, double a, const Moves &moves) {
    for (int k = 0; k < moves.number; ++k) body = moved_once(body, a, moves, k);
    return body;
}

// The same, and the motion in between at which a step ends.
__device__ inline Motion moved(Motion body, double a, const Moves &moves, Motion *copy) {
    for (int k = 0; k < moves.number; ++k) {
        if (k == moves.copied_after) *copy = body;
        body = moved_once(body, a, moves, k);
    }
    if (moves.number == moves.copied_after) *copy = body;
    return body;
}

// The motion of a coordinate of a body, in memory.
struct MotionAt {
    double *position, *velocity;
    __device__ Motion read() const { return {*position, *velocity}; }
    __device__ void write(const Motion &body) const { *position = body.x, *velocity = body.v; }
};

// Move a coordinate of a body; `copied` takes its motion where a step ends among the moves.
__device__ inline Motion move_at(const MotionAt &at, double a, const Moves &moves,
                                 const MotionAt &copied) {
    Motion copy, body = moved(at.read(), a, moves, &copy);
    at.write(body);
    if (moves.copied_after >= 0) copied.write(copy);
    return body;
}
