// Where the values of one function are stored: in slots of their own, in windows of a concat or
// reshape, in the caller's results, or as views of another value. Emits no steps.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "schedule/extract.h"
#include "schedule/slots.h"
#include "schedule/views.h"

namespace hone {

class Places {
 public:
  // `params` are the views of the parameters, `results` where the results must be stored. Both must
  // outlive this. New slots belong to `loop`.
  Places(Slots&, const Function&, const Grouping&, std::span<const Extracted>,
         std::span<const View> params, std::span<const View> results, std::uint32_t loop);

  // The view of any value that is in memory or a view of one.
  const View& of(Value);
  // The window of operand i of an assembled concat or reshape.
  View window(Value assembled, std::size_t i);

 private:
  std::uint32_t number(Value v) const { return grouping_.value_number(v); }
  bool is_made_here(Value) const;
  // Places the base of v so that v is at `at`; false if it already has a place or cannot be laid
  // out like that.
  bool try_place(Value v, const View& at);
  bool try_place_base(Value, const View& at);
  const View& keep(View v) { return made_.emplace_back(std::move(v)); }
  bool is_all_of_its_slot(const View&) const;
  bool views_fit(Value base, const View& at) const;
  void place_operands(Value assembled);
  void place_new(const Extracted&, const Group&);

  Slots& slots_;
  Graph& graph_;
  const Grouping& grouping_;
  std::uint32_t loop_;
  std::vector<const View*> places_;  // by value number; null: not yet known
  std::deque<View> made_;
  std::vector<std::vector<NodeId>> views_on_;  // by value number of the base
};

}  // namespace hone
