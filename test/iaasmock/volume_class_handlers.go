// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "k8s.io/apimachinery/pkg/labels"

type performanceClassView struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	IOPS        int64             `json:"iops"`
	Throughput  int64             `json:"throughput"`
	Labels      map[string]string `json:"labels"`
}

func showPerformanceClass(p PerformanceClass) performanceClassView {
	return performanceClassView{
		Name: p.Name, Description: p.Description, IOPS: p.IOPS, Throughput: p.Throughput, Labels: orEmptyMap(p.Labels),
	}
}

func (c *Cloud) listPerformanceClasses(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []performanceClassView{}
	for _, p := range c.catalogue.PerformanceClasses {
		if selector.Matches(labels.Set(p.Labels)) {
			views = append(views, showPerformanceClass(p))
		}
	}
	return items(views), nil
}

func (c *Cloud) getPerformanceClass(r *request) (any, *apiError) {
	class, ok := c.findPerformanceClass(r.vars["volumePerformanceClass"])
	if !ok {
		return nil, notFound("volume performance class")
	}
	return showPerformanceClass(class), nil
}
