"""How the manager's answers look in a notebook. Messages are data, which services pass on, too; so their looks stand
here: in subclasses of them that the SDK returns, and in what draws these."""
