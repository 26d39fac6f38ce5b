"""Networks trained side by side: minibatches, early stopping, pools of any number of networks, checkpoints."""
