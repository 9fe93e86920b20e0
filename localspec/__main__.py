"""`python -m localspec` does the same as `localspec`."""

from localspec.entry import main

if __name__ == "__main__":
    main()
