"""What every experiment needs: options, progress, spreads, tables, plots and a description of the machine."""
