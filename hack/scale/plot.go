// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
)

// The plot has a column for each phase: machines above, API calls below.
const (
	columnWidth, gap       = 300.0, 60.0
	leftEdge, headHeight   = 60.0, 132.0
	machinesHeight         = 200.0
	callsTop, callsHeight  = headHeight + machinesHeight + 60, 110.0
	plotHeight             = callsTop + callsHeight + 60
	ours, floors, callBars = "#0a5fb4", "#6b7280", "#c2570c"
)

// plot draws the run as SVG, with the floor beside it if there is one.
func plot(r, floor *result) string {
	c := newCanvas(leftEdge+float64(len(r.Phases))*(columnWidth+gap)-gap+30, plotHeight)
	c.text(leftEdge, 28, "start", "title", r.Conditions.headline())
	c.text(leftEdge, 50, "start", "key", r.Conditions.details()+"; "+r.Computer.processor())
	legend := []legendEntry{{ours, "", "driver " + r.Conditions.Driver}}
	if floor != nil {
		legend = append(legend, legendEntry{floors, dashes, "driver that answers at once: the floor"})
	}
	c.legend(leftEdge, 76, append(legend, legendEntry{callBars, "", "API calls a second"}))
	for i := range r.Phases {
		var same *phaseResult
		if floor != nil {
			same = floor.phase(r.Phases[i].Name)
		}
		drawPhase(c, leftEdge+float64(i)*(columnWidth+gap), &r.Phases[i], same)
	}
	return c.String()
}

// drawPhase draws a column.
func drawPhase(c *canvas, left float64, p, floor *phaseResult) {
	end, most, busiest := p.Settled, mostMachines(p), float64(p.Calls.PeakPerSecond)
	if floor != nil {
		end, most = max(end, floor.Settled), max(most, mostMachines(floor))
	}
	title := map[string]string{
		"up": "Scaling up: Running machines", "roll": "Rolling: Running machines of the new class", "down": "Scaling down: machines left",
	}[p.Name]
	above := newPanel(left, headHeight, machinesHeight, float64(end), most)
	c.text(left, headHeight-12, "start", "head", title)
	c.axes(above, "")
	if floor != nil {
		c.steps(above, line(floor), floors, dashes)
	}
	c.steps(above, line(p), ours, "")
	below := newPanel(left, callsTop, callsHeight, float64(end), busiest)
	c.text(left, callsTop-12, "start", "head", fmt.Sprintf("API calls a second, %.1f a server in all", p.Calls.PerServer))
	c.axes(below, "seconds")
	c.bars(below, p.Calls.PerSecond, callBars)
}

// point is one of a line: seconds and a count.
type point struct{ x, y float64 }

// line is what is drawn of a phase: Running machines, and when scaling down, all
// that are left.
func line(p *phaseResult) []point {
	var points []point
	for _, m := range p.History {
		y := m.Running
		if p.Name == "down" {
			y = m.Machines
		}
		points = append(points, point{float64(m.At), float64(y)})
	}
	if len(points) > 0 {
		points = append(points, point{float64(p.Settled), points[len(points)-1].y})
	}
	return points
}

func mostMachines(p *phaseResult) float64 {
	most := 0.0
	for _, point := range line(p) {
		most = max(most, point.y)
	}
	return most
}

// ticks returns round values from 0 to at least most, about n of them.
func ticks(most float64, n int) []float64 {
	if most <= 0 {
		most = 1
	}
	raw := most / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= raw {
			step *= factor
			break
		}
	}
	// Counts and seconds are whole numbers.
	step = max(step, 1)
	values := []float64{0}
	for values[len(values)-1] < most {
		values = append(values, values[len(values)-1]+step)
	}
	return values
}

// panel is a rectangle with scales.
type panel struct {
	left, top, height float64
	xs, ys            []float64
}

func newPanel(left, top, height, xMost, yMost float64) panel {
	return panel{left: left, top: top, height: height, xs: ticks(xMost, 6), ys: ticks(yMost, 4)}
}

func (p panel) x(value float64) float64 { return p.left + columnWidth*value/p.xs[len(p.xs)-1] }

func (p panel) y(value float64) float64 { return p.top + p.height*(1-value/p.ys[len(p.ys)-1]) }

// steps draws a count that stays until it changes.
func (c *canvas) steps(p panel, points []point, colour, dash string) {
	path := ""
	for i, point := range points {
		if i == 0 {
			path = fmt.Sprintf("M%.1f %.1f", p.x(point.x), p.y(point.y))
			continue
		}
		path += fmt.Sprintf("H%.1fV%.1f", p.x(point.x), p.y(point.y))
	}
	c.path(path, colour, dash)
}

// bars draws a count for each second.
func (c *canvas) bars(p panel, counts []int, colour string) {
	for second, count := range counts {
		if x := p.x(float64(second)); count > 0 && x < p.left+columnWidth {
			c.rectangle(x, p.y(float64(count)), p.x(1)-p.x(0), p.y(0)-p.y(float64(count)), colour)
		}
	}
}

// axes draws the grid and its numbers.
func (c *canvas) axes(p panel, unit string) {
	bottom := p.top + p.height
	for _, value := range p.ys {
		c.grid(p.left, p.y(value), p.left+columnWidth, p.y(value))
		c.text(p.left-8, p.y(value)+4, "end", "tick", fmt.Sprint(value))
	}
	for _, value := range p.xs {
		c.grid(p.x(value), bottom, p.x(value), bottom+5)
		c.text(p.x(value), bottom+20, "middle", "tick", fmt.Sprint(value))
	}
	c.text(p.left+columnWidth/2, bottom+40, "middle", "tick", unit)
}
