"""Pure functions from the API's models to rich renderables: no request, no clock, no terminal."""
