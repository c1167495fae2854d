"""Trains a small convolutional network on the UCI handwritten digits that scikit-learn ships and
writes what is beside this file: digits.onnx, training_images.npy (ink from 0 to 16) and
training_labels.npy, images.npy, labels.npy and logits.npy (the held-back images, their labels, and
what PyTorch computes for them). The same seed and versions give the same files."""

import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 20240607
HELD_BACK = 450
EPOCHS = 60
HERE = pathlib.Path(__file__).parent


def load():
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]  # ink in 0..1
    labels = digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=HELD_BACK, random_state=SEED, stratify=labels)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def shifted(images):
    """Every image moved by up to one pixel, so that the network does not learn positions."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    corner = torch.randint(0, 3, (len(images), 2))
    return torch.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, corner.tolist())])


def train(model, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(32):
            loss = nn.functional.cross_entropy(model(shifted(images[batch])), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in one order
    train_images, held_images, train_labels, held_labels = load()
    model = network()
    train(model, torch.from_numpy(train_images), torch.from_numpy(train_labels))
    model.eval()
    with torch.no_grad():
        logits = model(torch.from_numpy(held_images)).numpy()
    right = int((logits.argmax(1) == held_labels).sum())
    print(f"{right} of {len(held_labels)} held-back images right ({right / len(held_labels):.2%})")

    torch.onnx.export(model, torch.from_numpy(held_images[:1]), HERE / "digits.onnx",
                      input_names=["image"], output_names=["logits"], opset_version=17,
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}}, dynamo=False)
    np.save(HERE / "training_images.npy", (train_images * 16).astype(np.uint8))
    np.save(HERE / "training_labels.npy", train_labels.astype(np.uint8))
    np.save(HERE / "images.npy", held_images)
    np.save(HERE / "labels.npy", held_labels)
    np.save(HERE / "logits.npy", logits)


main()
