// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/migrate/status_view.h"

#include <algorithm>
#include <vector>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/migrate/findings_view.h"
#include "controlplane/cli/views/table.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using admin::v1::Migration;
using admin::v1::MigrationNode;
using admin::v1::MigrationWave;

constexpr size_t kMostNodeRows = 12;
constexpr size_t kStatusLine = 80;
constexpr size_t kNameColumn = 12;

// Returns one line, or several of at most 80 columns, the later ones indented below the first.
std::string StatusRow(const std::string& name, const std::string& foreign) {
  const std::string text = ForeignText(foreign);
  std::string out;
  std::string line;
  const auto put = [&] {
    const std::string head = out.empty() ? name : "";
    out += head + std::string(head.size() < kNameColumn ? kNameColumn - head.size() : 1, ' ') +
           line + "\n";
    line.clear();
  };
  constexpr size_t kWidth = kStatusLine - kNameColumn;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) put();
    for (; word.size() > kWidth; word.erase(0, kWidth)) {
      line = word.substr(0, kWidth);
      put();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  put();
  return out;
}

std::string Left(int64_t until, int64_t now) { return AgeText(std::max<int64_t>(until - now, 0)); }

bool IsOneOf(const std::string& state, std::initializer_list<const char*> states) {
  return std::ranges::find(states, state) != states.end();
}

// The first wave that is not finished; nullptr: all are.
const MigrationWave* CurrentWave(const Migration& migration) {
  for (const MigrationWave& wave : migration.waves()) {
    if (wave.state() != "VERIFIED") return &wave;
  }
  return nullptr;
}

const MigrationWave* WaveAfter(const Migration& migration, const MigrationWave* current) {
  for (int w = 0; current != nullptr && w + 1 < migration.waves_size(); ++w) {
    if (&migration.waves(w) == current) return &migration.waves(w + 1);
  }
  return nullptr;
}

std::string WaveText(const MigrationWave& wave) {
  return "wave " + wave.name() + " (" + std::to_string(wave.nodes()) +
         (wave.nodes() == 1 ? " node)" : " nodes)");
}

std::string Steps(const Migration& migration) {
  std::string text;
  size_t more = 0;
  for (const MigrationNode& node : migration.nodes()) {
    if (node.step().empty()) continue;
    if (text.size() > kStatusLine) {
      ++more;
      continue;
    }
    text += (text.empty() ? "" : ", ") + node.name() + ": " + node.step() + " (at most " +
            Left(node.step_deadline().seconds(), migration.read_time().seconds()) + ")";
  }
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

std::string WaitsFor(const Migration& migration) {
  const std::string& state = migration.state();
  const MigrationWave* const wave = CurrentWave(migration);
  if (migration.preflight_pending()) return "the preflight";
  if (state == "PLANNED") return "a person: preflight";
  if (state == "PREFLIGHTED") return "a person: start";
  if (state == "AWAITING_APPROVAL" && wave != nullptr) return "a person: approve " + wave->name();
  if (state == "PAUSED" || state == "FAILED") return "a person, who chooses below";
  if (state == "COMPLETED") return "a person: finalize";
  if (migration.gates_pending()) return "the health of the nodes of the wave";
  if (const std::string steps = Steps(migration); !steps.empty()) return steps;
  if (state == "RUNNING" && wave != nullptr && wave->state() == "SOAKING") {
    const int64_t until = wave->since().seconds() + migration.limits().soak_seconds();
    return "the end of the soak in " + Left(until, migration.read_time().seconds());
  }
  if (IsOneOf(state, {"RUNNING", "ROLLING_BACK", "FINALIZING"}))
    return migration.has_wake_time() ? "the next try in " + Left(migration.wake_time().seconds(),
                                                                 migration.read_time().seconds())
                                     : "a node that can be reached";
  return "nothing";
}

std::string Next(const Migration& migration) {
  const std::string& state = migration.state();
  const MigrationWave* const wave = CurrentWave(migration);
  if (IsOneOf(state, {"PLANNED", "PREFLIGHTED"}) && wave != nullptr) return WaveText(*wave);
  if (state == "AWAITING_APPROVAL" && wave != nullptr) return WaveText(*wave);
  if (state == "RUNNING" || state == "PAUSED") {
    const MigrationWave* const after = WaveAfter(migration, wave);
    if (after == nullptr) return "COMPLETED, and a person finalizes";
    return WaveText(*after) + (after->approved() || migration.limits().automatic_approval()
                                   ? ", approved"
                                   : ", which a person approves");
  }
  if (state == "COMPLETED") return "finalize removes the old paths; then there is no way back";
  if (state == "ROLLING_BACK") return "every changed node is as before";
  if (state == "FINALIZING") return "FINALIZED";
  return "nothing";
}

std::string Stops(const Migration& migration) {
  const auto& limits = migration.limits();
  if (!IsOneOf(migration.state(), {"RUNNING", "AWAITING_APPROVAL", "PREFLIGHTED"})) return {};
  return "a step that fails or takes " + AgeText(limits.step_deadline_seconds()) +
         ", a node that is lost for " + AgeText(limits.lost_after_seconds()) +
         ", nodes that are not healthy after the soak, another inventory than planned" +
         (limits.window_end() == 0 ? "" : ", the end of the change window");
}

std::string Counts(const MigrationWave& wave) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : wave.states())
    parts.push_back(std::to_string(count) + " " + state);
  std::ranges::sort(parts);
  return Joined(parts, ", ");
}

std::string WavesText(const Migration& migration, size_t limit) {
  Table table;
  table.AddColumn("WAVE", Column::kCut);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("FOR", Column::kRight);
  table.AddColumn("NODES", Column::kCut);
  for (const MigrationWave& wave : migration.waves()) {
    const bool waits = wave.state() == "WAITING";
    table.AddRow({wave.name(), wave.state(),
                  waits ? "-" : Left(migration.read_time().seconds(), wave.since().seconds()),
                  Counts(wave)});
  }
  return table.Text(limit);
}

bool IsRemarkable(const MigrationNode& node) {
  return !node.step().empty() || node.held() || !node.reachable() ||
         !IsOneOf(node.state(), {"PENDING", "SOAKING", "DONE", "OLD_REMOVED"});
}

std::string NodesText(const Migration& migration, size_t limit) {
  Table table;
  table.AddColumn("NODE", Column::kCut);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("STEP", Column::kLeft);
  table.AddColumn("FOR", Column::kRight);
  table.AddColumn("WHY", Column::kCut);
  size_t count = 0;
  for (const MigrationNode& node : migration.nodes()) {
    if (!IsRemarkable(node) || ++count > kMostNodeRows) continue;
    std::string why = node.reason();
    if (!node.reachable()) why = "not connected" + (why.empty() ? "" : "; " + why);
    table.AddRow({node.name(), node.state(), OrDash(node.step()),
                  node.since().seconds() == 0
                      ? "-"
                      : Left(migration.read_time().seconds(), node.since().seconds()),
                  OrDash(why)});
  }
  if (count == 0) return {};
  std::string text = "\n" + table.Text(limit);
  if (count > kMostNodeRows) text += std::to_string(count - kMostNodeRows) + " more nodes\n";
  return text;
}

}  // namespace

std::string MigrationStatusText(const Migration& migration, size_t limit) {
  std::string text =
      StatusRow("migration", ShortName(migration.name()) + ": cluster " + migration.cluster() +
                                 " (" + migration.adapter() + ") to " + migration.target());
  text +=
      StatusRow("state", migration.state() + " for " +
                             Left(migration.read_time().seconds(), migration.since().seconds()));
  if (!migration.reason().empty()) text += StatusRow("why", migration.reason());
  text += StatusRow("waits for", WaitsFor(migration));
  text += StatusRow("next", Next(migration));
  if (const std::string stops = Stops(migration); !stops.empty())
    text += StatusRow("stops at", stops);
  text += "\n" + WavesText(migration, limit) + NodesText(migration, limit);
  // Findings are of use until the migration starts; a report has them afterwards.
  if (IsOneOf(migration.state(), {"PLANNED", "PREFLIGHTED"}) && !migration.findings().empty())
    text += "\n" + FindingsText(migration);
  if (migration.exits().empty()) return text;
  text += "\nwhat a person can do now:\n";
  for (const std::string& exit : migration.exits()) text += "  " + ForeignText(exit) + "\n";
  return text;
}

std::string MigrationListText(const admin::v1::ListMigrationsResponse& list, size_t limit) {
  Table table;
  table.AddColumn("NAME", Column::kCut);
  table.AddColumn("CLUSTER", Column::kCut);
  table.AddColumn("TO", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("FOR", Column::kRight);
  table.AddColumn("WHY", Column::kCut);
  for (const Migration& migration : list.migrations()) {
    table.AddRow({ShortName(migration.name()), OrDash(migration.cluster()),
                  OrDash(migration.target()), OrDash(migration.state()),
                  Left(migration.read_time().seconds(), migration.since().seconds()),
                  OrDash(migration.reason())});
  }
  return table.Text(limit);
}

std::string MigrationReportText(const Migration& migration,
                                const admin::v1::ListMigrationEventsResponse& events) {
  std::string text = "# Migration " + ShortName(migration.name()) + "\n\n";
  text += "- cluster: " + migration.cluster() + " (" + migration.adapter() + ")\n";
  text += "- target: " + migration.target() + "\n";
  text += "- state: " + migration.state() +
          (migration.reason().empty() ? "" : ", " + ForeignText(migration.reason())) + "\n";
  text += "- plan: " + migration.plan_hash() + "\n\n";
  text += "| wave | state | nodes |\n|---|---|---|\n";
  for (const MigrationWave& wave : migration.waves())
    text += "| " + wave.name() + " | " + wave.state() + " | " + Counts(wave) + " |\n";
  text += "\n| node | wave | state | why |\n|---|---|---|---|\n";
  for (const MigrationNode& node : migration.nodes()) {
    text += "| " + node.name() + " | " + node.wave() + " | " + node.state() + " | " +
            ForeignText(node.reason()) + " |\n";
  }
  if (!migration.findings().empty()) {
    text += "\n| preflight | where | what | remedy |\n|---|---|---|---|\n";
    for (const admin::v1::PreflightFinding& found : migration.findings()) {
      text += "| " + found.class_() + " | " + ForeignText(found.subject()) + " | " +
              ForeignText(found.text()) + " | " + ForeignText(found.remedy()) + " |\n";
    }
  }
  text += "\n| after | who | what | from | to | why |\n|---|---|---|---|---|---|\n";
  const int64_t begin = events.events().empty() ? 0 : events.events(0).time().seconds();
  for (const admin::v1::MigrationEvent& event : events.events()) {
    text += "| " + AgeText(event.time().seconds() - begin) + " | " + ForeignText(event.who()) +
            " | " + ForeignText(event.subject()) + " | " + event.before() + " | " + event.after() +
            " | " + ForeignText(event.reason()) + " |\n";
  }
  return text;
}

}  // namespace rocegw::cli
