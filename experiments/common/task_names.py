"""How --task names data of the user's own; importing it loads neither JAX nor pandas, which `--help` does not need."""

from irtjax.tasks.choices import ENDINGS

IMAGES, TFDS = "images:", "tfds:"
FORMS = f"FILE ({', '.join(ENDINGS)}) or a folder of such, {IMAGES}FOLDER, {TFDS}NAME"
