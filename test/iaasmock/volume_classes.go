// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "k8s.io/apimachinery/pkg/labels"

// PerformanceClass is a speed class of volumes. Every project and region has it.
type PerformanceClass struct {
	Name        string
	Description string
	// IOPS is per second, Throughput in MB per second.
	IOPS       int64
	Throughput int64
	Labels     map[string]string
}

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

// defaultPerformanceClasses are some of STACKIT's classes.
func defaultPerformanceClasses() []PerformanceClass {
	return []PerformanceClass{
		{Name: "storage_premium_perf0", Description: "Performance Class 0", IOPS: 120, Throughput: 25},
		{Name: "storage_premium_perf1", Description: "Performance Class 1", IOPS: 500, Throughput: 50},
		{Name: "storage_premium_perf2", Description: "Performance Class 2", IOPS: 1000, Throughput: 75},
		{Name: "storage_premium_perf4", Description: "Performance Class 4", IOPS: 2500, Throughput: 125},
		{Name: "storage_premium_perf6", Description: "Performance Class 6", IOPS: 5000, Throughput: 200},
	}
}

func (c *Cloud) findPerformanceClass(name string) (PerformanceClass, bool) {
	for _, p := range c.catalogue.PerformanceClasses {
		if p.Name == name {
			return p, true
		}
	}
	return PerformanceClass{}, false
}

// checkPerformanceClass accepts any name if the catalogue has no classes. It refuses an
// unknown class only WithUnconfirmedRefusals: STACKIT was seen to use another class
// instead, without a message (terraform-provider-stackit issue 1004).
func (c *Cloud) checkPerformanceClass(name string) *apiError {
	if name == "" || len(c.catalogue.PerformanceClasses) == 0 {
		return nil
	}
	if _, ok := c.findPerformanceClass(name); ok {
		return nil
	}
	return c.unconfirmed(noSuch("volume performance class"))
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
