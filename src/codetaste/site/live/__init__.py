"""codetaste view: the pages while runs go on."""
