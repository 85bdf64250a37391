add-numbers-please
