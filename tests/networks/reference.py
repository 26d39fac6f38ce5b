"""The networks once more, in NumPy: one example at a time, without padding, step by step as in the papers."""

import numpy as np
from example_tasks import dense


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def lstm_step(layer, x, h, c):
    i, f, o, g = np.split(dense(layer["input"], x) + h @ layer["recurrent"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def lstm(layer, xs):
    h = c = np.zeros(layer["recurrent"].shape[0])
    states = []
    for x in xs:
        h, c = lstm_step(layer, x, h, c)
        states.append(h)
    return np.array(states)


def bilstm(layer, xs):
    return np.concatenate([lstm(layer["forward"], xs), lstm(layer["backward"], xs[::-1])[::-1]], axis=1)


def lstm_network(p, sentences, layers=None):
    u = np.concatenate([lstm(p["encoders"][at], xs)[-1] for at, xs in enumerate(sentences)])
    for at in range((3 if len(sentences) > 1 else 0) if layers is None else layers):
        u = np.tanh(dense(p["layers"][at], u))
    return dense(p["out"], u)


def lstm_study_network(p, sentences):
    return lstm_network(p, sentences, layers=3)


def cnn_study_network(p, sentences):
    return cnn_network(p, [np.concatenate(sentences)])


def cnn_network(p, sentences):
    features = []
    for xs in sentences:
        padded = np.concatenate([xs, np.zeros((4, xs.shape[1]))])
        for at, n in enumerate((3, 4, 5)):
            windows = [relu(dense(p["filters"][at], padded[i : i + n].reshape(-1))) for i in range(len(xs))]
            features.append(np.max(windows, axis=0))
    u = np.concatenate(features)
    if len(sentences) > 1:
        u = np.tanh(dense(p["layers"][0], u))
    return dense(p["out"], u)


def nse_encode(p, xs):
    memory = xs.T  # K x L, as in the paper
    h_read = c_read = h = c_write = np.zeros(xs.shape[1])
    for x in xs:
        h_read, c_read = lstm_step(p["read"], x, h_read, c_read)
        z = softmax(h_read @ memory)
        m = memory @ z
        c = relu(dense(p["compose"], np.concatenate([h_read, m])))
        h, c_write = lstm_step(p["write"], c, h, c_write)
        ones_k, ones_l = np.ones(memory.shape[0]), np.ones(memory.shape[1])
        memory = memory * (1 - np.outer(z, ones_k).T) + np.outer(h, ones_l) * np.outer(z, ones_k).T
    return h


def nse_network(p, sentences):
    encoded = [nse_encode(p, xs) for xs in sentences]
    if len(sentences) == 1:
        return dense(p["out"], encoded[0])
    a, b = encoded
    return dense(p["out"], relu(dense(p["layers"][0], np.concatenate([a, b, a - b, a * b]))))


def esim_network(p, sentences):
    a, b = (bilstm(p["encoder"], xs) for xs in sentences)
    e = a @ b.T
    aligned_a = np.array([softmax(row) for row in e]) @ b
    aligned_b = np.array([softmax(column) for column in e.T]) @ a
    pooled = []
    for states, aligned in ((a, aligned_a), (b, aligned_b)):
        m = np.concatenate([states, aligned, states - aligned, states * aligned], axis=1)
        v = bilstm(p["composition"], relu(dense(p["local"], m)))
        pooled += [v.mean(0), v.max(0)]
    return dense(p["out"], np.tanh(dense(p["hidden"], np.concatenate(pooled))))


def correlate(x, kernel):
    """(H, W, C) with (size, size, C, O), zeros around."""
    size, (height, width, _) = kernel.shape[0], x.shape
    radius = size // 2
    padded = np.pad(x, ((radius, radius), (radius, radius), (0, 0)))
    y = np.zeros((height, width, kernel.shape[-1]))
    for i in range(height):
        for j in range(width):
            y[i, j] = np.tensordot(padded[i : i + size, j : j + size], kernel, 3)
    return y


def pool(x):
    height, width, _ = x.shape
    rows = [[x[i : i + 2, j : j + 2].max((0, 1)) for j in range(0, width, 2)] for i in range(0, height, 2)]
    return np.array(rows)


def lenet_network(p, x):
    for layer in ("first", "second"):
        x = pool(relu(correlate(x, p[layer]["kernel"]) + p[layer]["bias"]))
    return dense(p["out"], relu(dense(p["hidden"], x.reshape(-1))))


def group_norm(y, layer):
    y = y.copy()
    for first in range(0, y.shape[-1], 16):
        group = y[..., first : first + 16]
        y[..., first : first + 16] = (group - group.mean()) / np.sqrt(group.var() + 1e-5)
    return y * layer["gain"] + layer["bias"]


def resnet_network(p, x):
    x = relu(group_norm(correlate(x, p["first"]["kernel"]), p["first"]))
    for at in range(len(p["layers"])):
        first, second = p["layers"][at]["first"], p["layers"][at]["second"]
        halved = first["kernel"].shape[2] < first["kernel"].shape[3]
        y, shortcut = correlate(x, first["kernel"]), x
        if halved:
            y = y[::2, ::2]
            shortcut = np.zeros(y.shape)
            shortcut[..., : x.shape[-1]] = x[::2, ::2]
        x = relu(shortcut + group_norm(correlate(relu(group_norm(y, first)), second["kernel"]), second))
    return dense(p["out"], x.mean((0, 1)))


def vgg16_network(p, x):
    at = 0
    for convolutions in (2, 2, 3, 3, 3):
        for _ in range(convolutions):
            layer = p["layers"][at]
            x = relu(group_norm(correlate(x, layer["kernel"]), layer))
            at += 1
        x = pool(x)
    return dense(p["out"], relu(dense(p["hidden"], x.reshape(-1))))
