package operator

import "context"

func (v *validator) checkOnline(context.Context) {}
