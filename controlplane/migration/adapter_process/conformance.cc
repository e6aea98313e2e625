// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter_process/conformance.h"

#include <algorithm>
#include <span>

#include "controlplane/migration/adapter_process/program_run.h"
#include "controlplane/migration/drive/evidence.h"
#include "controlplane/migration/drive/procedure.h"

namespace rocegw::migration {
namespace {

constexpr std::chrono::seconds kShort(10);
// "not yet" is asked again so often, a second apart.
constexpr int kMostTries = 30;

class Conformance {
 public:
  Conformance(const std::vector<std::string>& words, const ConformanceOptions& options,
              const std::function<void(const ConformanceCheck&)>& report)
      : words_(words), options_(options), report_(report), adapter_(words) {}

  size_t Run() {
    if (!CheckHello() || !CheckInventory()) return failed_;
    CheckForeignInput();
    CheckReading();
    if (!options_.change_node.empty()) CheckChanges();
    return failed_;
  }

 private:
  bool Tell(const std::string& name, const std::string& problem) {
    if (!problem.empty()) ++failed_;
    report_({name, problem.empty(), problem});
    return problem.empty();
  }

  bool CheckHello() {
    std::string problem;
    hello_ = adapter_.Hello(options_.cluster, problem);
    return Tell("hello", problem);
  }

  bool CheckInventory() {
    std::string problem;
    inventory_ = adapter_.ReadInventory(options_.cluster, problem);
    if (problem.empty() && inventory_.cluster != options_.cluster)
      problem = "it is the inventory of " + inventory_.cluster;
    if (!Tell("inventory", problem)) return false;
    const Inventory again = adapter_.ReadInventory(options_.cluster, problem);
    if (problem.empty() && HashOf(again) != HashOf(inventory_))
      problem = "two answers in a row differ: the order of nodes must not change";
    return Tell("inventory is stable", problem);
  }

  AdapterRequest Request(const std::string& call, const std::string& node) {
    AdapterRequest request{.call = call, .id = std::to_string(++id_), .cluster = options_.cluster};
    request.node = node;
    request.from = from_;
    request.to = options_.to;
    request.deadline_seconds = options_.deadline_seconds;
    return request;
  }

  // The program says no in its own words; it neither hangs nor says "done".
  std::string Refuses(const AdapterRequest& request) {
    const AdapterAnswer answer = adapter_.Call(request);
    if (answer.outcome == Outcome::kFailed || answer.outcome == Outcome::kInconclusive)
      return answer.text.empty() ? "the answer has no text" : "";
    return "the outcome is " + std::string(WordOf(answer.outcome)) + ", not failed: " + answer.text;
  }

  void CheckForeignInput() {
    Tell("an unknown call fails", Refuses(Request("no-such-call", inventory_.nodes[0].name)));
    Tell("an unknown node fails", Refuses(Request("health", "no-such-node.invalid")));
    ProgramLimits limits;
    limits.deadline = kShort;
    const ProgramRun garbage = RunProgram(words_, "this is not JSON\n", limits);
    std::string problem;
    if (garbage.timed_out) problem = "it hangs";
    if (problem.empty() && garbage.exit_status == 0) {
      const std::string line(OnlyLine(garbage.output, problem));
      problem.clear();
      if (ReadAnswer(line, "").outcome == Outcome::kDone) problem = "it says done";
    }
    Tell("a line that is no request is no success", problem);
    const ProgramRun nothing = RunProgram(words_, "", limits);
    Tell("ends when its input ends", nothing.timed_out ? "it hangs" : "");
  }

  void CheckReading() {
    for (const Step step : {Step::kHealth, Step::kOkToStop}) {
      const std::string name(WordOf(step));
      const AdapterAnswer answer = adapter_.Call(Request(name, inventory_.nodes[0].name));
      const bool valid = answer.outcome == Outcome::kDone || answer.outcome == Outcome::kNotYet ||
                         answer.outcome == Outcome::kFailed;
      Tell(name, valid ? "" : std::string(WordOf(answer.outcome)) + ": " + answer.text);
    }
  }

  // Makes the step, and twice: a controller that was killed sends it again.
  bool Twice(Step step, Activity activity) {
    const std::string name(WordOf(step));
    if (std::ranges::find(hello_.calls, name) == hello_.calls.end())
      return Tell(name, "the adapter does not name this call in its hello");
    record_.activity = activity;
    for (const char* suffix : {"", " again"}) {
      Judgement judgement;
      for (int i = 0; i < kMostTries; ++i) {
        const AdapterAnswer answer = adapter_.Call(Request(name, options_.change_node));
        StepResult result{.node = 0, .outcome = answer.outcome, .evidence = answer.evidence};
        result.text = answer.text;
        judgement = Judge(plan_, 0, record_, step, result);
        if (step == Step::kBackup && *suffix == '\0')
          record_.backup_hash = answer.evidence.config_hash;
        if (step == Step::kSwitch) record_.switched_hash = answer.evidence.config_hash;
        if (judgement.outcome != Outcome::kNotYet) break;
        // The program itself is a pause that no signal cuts short.
        (void)RunProgram({"sleep", "1"}, "", {});
      }
      if (!Tell(name + suffix,
                judgement.outcome == Outcome::kDone
                    ? ""
                    : std::string(WordOf(judgement.outcome)) + ": " + judgement.reason))
        return false;
    }
    return true;
  }

  void CheckChanges() {
    const auto node =
        std::ranges::find(inventory_.nodes, options_.change_node, &InventoryNode::name);
    if (node == inventory_.nodes.end()) {
      Tell("node " + options_.change_node, "the inventory does not have it");
      return;
    }
    from_ = node->transport;
    plan_.target = options_.to;
    plan_.nodes.push_back({.name = node->name, .domain = {}, .from = node->transport});
    plan_.restarts = inventory_.system_class == SystemClass::kFlagDay ||
                     inventory_.system_class == SystemClass::kPerClient;
    if (from_ == options_.to) {
      Tell("node " + node->name, "it has the transport already");
      return;
    }
    const auto forward = ForwardSteps(plan_.restarts);
    for (const StepRule& rule : forward) {
      if (!Twice(rule.step, Activity::kForward)) return;
    }
    for (const Step step : UndoSteps(plan_.restarts, forward.size())) {
      if (!Twice(step, Activity::kUndo)) return;
    }
    std::string problem;
    const Inventory after = adapter_.ReadInventory(options_.cluster, problem);
    if (problem.empty() && InventoryJson(after) != InventoryJson(inventory_))
      problem = "the inventory differs from the one before";
    Tell("the node is as before", problem);
  }

  const std::vector<std::string>& words_;
  const ConformanceOptions& options_;
  const std::function<void(const ConformanceCheck&)>& report_;
  const Adapter adapter_;
  AdapterHello hello_;
  Inventory inventory_;
  Plan plan_;
  NodeRecord record_;
  Transport from_ = Transport::kTcp;
  uint64_t id_ = 0;
  size_t failed_ = 0;
};

}  // namespace

size_t TestAdapter(const std::vector<std::string>& words, const ConformanceOptions& options,
                   const std::function<void(const ConformanceCheck&)>& report) {
  return Conformance(words, options, report).Run();
}

}  // namespace rocegw::migration
