"""The recipe behind models/ppe_detect: data, network, loss, training, export, evaluation."""
