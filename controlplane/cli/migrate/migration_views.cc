// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/migrate/migration_views.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "controlplane/cli/views/table.h"

namespace rocegw::cli {
namespace {

using migration::NodeState;
using migration::WordOf;
using Json = nlohmann::json;

constexpr size_t kMostRows = 20;
// Text lines besides tables are for terminals of this width.
constexpr size_t kLine = 80;

std::string Line(const std::string& name, const std::string& text) {
  return name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + text + "\n";
}

// Returns the text in lines of at most 80 columns, the later ones indented below the first.
std::string NamedLines(const std::string& name, const std::string& text) {
  std::string out;
  std::string line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > kLine - 14) {
      out += Line(out.empty() ? name : "", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + Line(out.empty() ? name : "", line);
}

std::string Domains(const migration::Plan& plan, const migration::Wave& wave) {
  std::map<std::string, size_t> domains;
  for (const uint32_t node : wave.nodes) ++domains[plan.nodes[node].domain];
  if (plan.per_domain.empty()) return "-";
  if (domains.size() == 1) return domains.begin()->first;
  return std::to_string(domains.size()) + " " + plan.per_domain + "s";
}

std::string Names(const migration::Plan& plan, const migration::Wave& wave) {
  const std::string& first = plan.nodes[wave.nodes.front()].name;
  if (wave.nodes.size() == 1) return first;
  return first + " .. " + plan.nodes[wave.nodes.back()].name;
}

std::string Procedure(const migration::Plan& plan) {
  if (plan.flag_day) return "flag day: all nodes stop, switch and start together";
  if (plan.restarts) return "restart: node by node, each drained and stopped";
  return "two paths: the new one beside the old one, then the flip";
}

std::string Counts(const migration::Record& record, const migration::Wave& wave) {
  std::map<NodeState, size_t> counts;
  for (const uint32_t node : wave.nodes) ++counts[record.nodes[node].state];
  std::string text;
  for (const auto& [state, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(WordOf(state));
  }
  return text;
}

bool IsRemarkable(NodeState state) {
  return state != NodeState::kPending && state != NodeState::kSoaking && state != NodeState::kDone;
}

}  // namespace

std::string PlanText(const migration::Plan& plan, size_t limit) {
  std::string text = Line("plan", plan.name);
  text += Line("cluster", plan.cluster + " (" + plan.adapter + ")");
  text += Line("target", std::string(WordOf(plan.target)));
  text += Line("procedure", Procedure(plan));
  text += Line("nodes", std::to_string(plan.nodes.size()) + ", at most " +
                            std::to_string(plan.knobs.max_unavailable) + " out of service" +
                            (plan.per_domain.empty() ? "" : ", of one " + plan.per_domain));
  text += Line("soak", AgeText(plan.knobs.soak) + " after each wave");
  for (const std::string& gate : plan.gates) text += NamedLines("gate", gate);
  for (const std::string& note : plan.notes) text += NamedLines("note", note);
  text += "\n";
  Table table;
  table.AddColumn("WAVE", Column::kCut);
  table.AddColumn("NODES", Column::kRight);
  table.AddColumn("VOTES", Column::kRight);
  table.AddColumn("DOMAINS", Column::kCut);
  table.AddColumn("WHICH", Column::kCut);
  for (const migration::Wave& wave : plan.waves) {
    const auto votes =
        std::ranges::count_if(wave.nodes, [&](uint32_t node) { return plan.nodes[node].quorum; });
    table.AddRow({wave.name, std::to_string(wave.nodes.size()), std::to_string(votes),
                  Domains(plan, wave), Names(plan, wave)});
  }
  text += table.Text(limit);
  return text + "\n" + migration::HashOf(plan) + "\n";
}

std::string DifferencesText(const std::vector<migration::PlanDifference>& differences,
                            size_t limit) {
  if (differences.empty()) return "the cluster is as planned\n";
  Table table;
  table.AddColumn("WHAT", Column::kCut);
  table.AddColumn("PLANNED", Column::kCut);
  table.AddColumn("NOW", Column::kCut);
  for (const auto& difference : differences)
    table.AddRow({difference.subject, difference.planned, difference.now});
  return table.Text(limit);
}

std::string DifferencesJson(const std::vector<migration::PlanDifference>& differences) {
  Json list = Json::array();
  for (const auto& difference : differences) {
    list.push_back({{"subject", difference.subject},
                    {"planned", difference.planned},
                    {"now", difference.now}});
  }
  return Json{{"differences", std::move(list)}}.dump(2) + "\n";
}

std::string SimulationText(const SimulationView& view, size_t limit) {
  const migration::Record& record = view.simulation.record();
  std::string text;
  if (view.events) {
    Table events;
    events.AddColumn("AFTER", Column::kRight);
    events.AddColumn("WHAT", Column::kCut);
    events.AddColumn("TO", Column::kLeft);
    events.AddColumn("WHY", Column::kCut);
    for (const migration::Change& change : view.simulation.changes()) {
      events.AddRow({AgeText(change.time - view.begun_at), change.subject, OrDash(change.after),
                     OrDash(change.reason)});
    }
    text += events.Text(limit) + "\n";
  }
  text += Line("state", std::string(WordOf(record.state)));
  if (!record.reason.empty()) text += NamedLines("why", record.reason);
  text += Line("took", AgeText(view.simulation.now() - view.begun_at) + " of simulated time, " +
                           std::to_string(view.simulation.commands()) + " commands");
  text += Line("unavailable", "at most " + std::to_string(view.simulation.most_unavailable()) +
                                  " nodes at a time");
  text += Line("invariants", view.simulation.violations().empty()
                                 ? "12 of 12 held"
                                 : std::to_string(view.simulation.violations().size()) + " broken");
  for (const migration::Violation& violation : view.simulation.violations())
    text += NamedLines("  broken", std::to_string(violation.invariant) + ": " + violation.text);
  text += "\n";
  Table waves;
  waves.AddColumn("WAVE", Column::kCut);
  waves.AddColumn("STATE", Column::kLeft);
  waves.AddColumn("NODES", Column::kCut);
  for (size_t w = 0; w < view.plan.waves.size(); ++w) {
    waves.AddRow({view.plan.waves[w].name, std::string(WordOf(record.waves[w].state)),
                  Counts(record, view.plan.waves[w])});
  }
  text += waves.Text(limit);
  Table nodes;
  nodes.AddColumn("NODE", Column::kCut);
  nodes.AddColumn("STATE", Column::kLeft);
  nodes.AddColumn("WHY", Column::kCut);
  size_t remarkable = 0;
  for (size_t i = 0; i < record.nodes.size(); ++i) {
    const migration::NodeRecord& node = record.nodes[i];
    if (!IsRemarkable(node.state) || node.state == NodeState::kOldRemoved) continue;
    if (++remarkable > kMostRows) continue;
    nodes.AddRow({view.plan.nodes[i].name, std::string(WordOf(node.state)), OrDash(node.reason)});
  }
  if (remarkable != 0) text += "\n" + nodes.Text(limit);
  if (remarkable > kMostRows) text += std::to_string(remarkable - kMostRows) + " more nodes\n";
  const std::vector<migration::Order> exits = migration::Exits(view.plan, record);
  if (exits.empty()) return text;
  text += "\nwhat a person can do now:\n";
  for (size_t i = 0; i < std::min(exits.size(), kMostRows); ++i)
    text += "  " + migration::OrderText(view.plan, exits[i]) + "\n";
  if (exits.size() > kMostRows) text += "  " + std::to_string(exits.size() - kMostRows) + " more\n";
  return text;
}

std::string SimulationJson(const SimulationView& view) {
  const migration::Record& record = view.simulation.record();
  Json waves = Json::array();
  for (size_t w = 0; w < view.plan.waves.size(); ++w)
    waves.push_back({{"name", view.plan.waves[w].name}, {"state", WordOf(record.waves[w].state)}});
  Json nodes = Json::array();
  for (size_t i = 0; i < record.nodes.size(); ++i) {
    nodes.push_back({{"name", view.plan.nodes[i].name},
                     {"state", WordOf(record.nodes[i].state)},
                     {"reason", record.nodes[i].reason}});
  }
  Json violations = Json::array();
  for (const migration::Violation& violation : view.simulation.violations())
    violations.push_back({{"invariant", violation.invariant}, {"text", violation.text}});
  Json exits = Json::array();
  for (const migration::Order& order : migration::Exits(view.plan, record))
    exits.push_back(migration::OrderText(view.plan, order));
  Json json = {{"plan", view.plan.name},
               {"plan_hash", record.plan_hash},
               {"state", WordOf(record.state)},
               {"pause_reason", WordOf(record.pause_reason)},
               {"reason", record.reason},
               {"simulated_seconds", view.simulation.now() - view.begun_at},
               {"commands", view.simulation.commands()},
               {"most_unavailable", view.simulation.most_unavailable()},
               {"violations", std::move(violations)},
               {"waves", std::move(waves)},
               {"nodes", std::move(nodes)},
               {"exits", std::move(exits)}};
  if (view.events) {
    Json events = Json::array();
    for (const migration::Change& change : view.simulation.changes()) {
      events.push_back({{"after_seconds", change.time - view.begun_at},
                        {"who", change.who},
                        {"subject", change.subject},
                        {"before", change.before},
                        {"after", change.after},
                        {"reason", change.reason}});
    }
    json["events"] = std::move(events);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rocegw::cli
