"""What tests stand on: a control plane, a judge, fakes, builders."""
