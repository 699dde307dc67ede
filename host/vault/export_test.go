package vault

// OnStep has f told of every durable step.
func (v *Vault) OnStep(f func(string)) { v.step = f }
