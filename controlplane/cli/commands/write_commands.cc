// SPDX-License-Identifier: Apache-2.0
// create, apply, update, delete.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <iostream>

#include "controlplane/cli/commands/fleet_progress.h"
#include "controlplane/cli/documents/object_input.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

// Limit of attempts when others write the object at the same time.
constexpr int kMostAttempts = 5;

struct WriteQuery {
  std::string file;
  std::string noun;
  std::vector<std::string> words;  // a name, then assignments; or names to delete
  std::string tenant;
  std::string etag;
  bool ignore_missing = false;
  bool wait = false;
};

// Result for one object.
struct Outcome {
  CallResult result;
  const char* what = "";  // "created"
  MessagePtr object;
};

int64_t RevisionOf(const Message& object) {
  const std::string etag = TextOf(PartOf(object, "meta"), "etag");
  return etag.starts_with('r') ? std::atoll(etag.c_str() + 1) : 0;
}

// Tenants, policies and gateways before the pools and donors that name them.
size_t Rank(const ObjectInput& input) { return input.kind->parent.empty() ? 0 : 1; }

CallResult ReadInputs(const WriteQuery& query, std::vector<ObjectInput>& inputs) {
  if (auto result = ReadObjects(query.file, inputs); !result.ok()) return result;
  std::ranges::stable_sort(inputs, {}, Rank);
  for (const ObjectInput& input : inputs) {
    if (!input.kind->writable) {
      return {kUsage, input.where + ": operations are made by what they do (rocegwctl drain)", {}};
    }
  }
  return {};
}

// Parses KIND NAME FIELD=VALUE... as an object.
CallResult ReadWords(const WriteQuery& query, ObjectInput& input) {
  const Kind* const kind = FindKind(query.noun);
  if (kind == nullptr || !kind->writable) {
    return {kUsage,
            "'" + query.noun + "' is not tenant, pool, ccPolicy, gateway, roleBinding or donor",
            {}};
  }
  if (query.words.empty() || query.words[0].find('=') != std::string::npos) {
    return {kUsage, "which " + std::string(kind->singular) + "? A name is missing", {}};
  }
  std::string name;
  if (auto result = FullName(*kind, query.words[0], query.tenant, name); !result.ok()) {
    return result;
  }
  return ParseAssignments(*kind, name, {query.words.begin() + 1, query.words.end()}, input);
}

class Writer {
 public:
  Writer(Program& program, const WriteQuery& query) : program_(program), query_(query) {}

  // `whole_maps`: see Put.
  Outcome Create(const ObjectInput& input, bool whole_maps) {
    Outcome outcome;
    const MessagePtr empty = NewMessage(input.kind->object);
    const MessagePtr object = Merged(*empty, input, whole_maps);
    SetText(*object, "name", TextOf(*input.object, "name"));
    outcome.what = "created";
    outcome.result = client_.Create(*input.kind, *object, Options(), outcome.object);
    return outcome;
  }

  // `whole_maps`: as in apply, see Merged. `create`: creates a missing object.
  Outcome Put(const ObjectInput& input, bool whole_maps, bool create) {
    Outcome outcome;
    for (int attempt = 1;; ++attempt) {
      MessagePtr before;
      outcome.result = client_.Get(*input.kind, TextOf(*input.object, "name"), before);
      if (outcome.result.code == kNotFound && create) return Create(input, whole_maps);
      if (!outcome.result.ok()) return outcome;
      const MessagePtr after = Merged(*before, input, whole_maps);
      if (MessageDifferencer::Equals(*before, *after)) {
        outcome.what = "unchanged";
        outcome.object = std::move(before);
        return outcome;
      }
      const std::string etag = WantedEtag(input);
      // Maps were merged with the object as read, so it must not have changed.
      const bool own_etag = etag.empty() && !whole_maps;
      if (!own_etag) SetText(*MutablePart(*after, "meta"), "etag", etag);
      outcome.what = "changed";
      outcome.result = client_.Update(*input.kind, *after, input.mask, Options(), outcome.object);
      if (outcome.result.reason != "ETAG_MISMATCH" || !own_etag || attempt == kMostAttempts) {
        return outcome;
      }
    }
  }

  Outcome Delete(const Kind& kind, const std::string& name, const std::string& etag) {
    Outcome outcome;
    outcome.what = "deleted";
    outcome.result = client_.Delete(kind, name, etag, Options());
    if (outcome.result.code == kNotFound && query_.ignore_missing) {
      outcome.result = {};
      outcome.what = "not there";
    }
    return outcome;
  }

  // Reports the result for the object.
  void Tell(const Kind& kind, const std::string& name, const std::string& where, Outcome outcome) {
    ++count_;
    if (!outcome.result.ok()) {
      // Most refusals name the object themselves.
      const bool named = outcome.result.text.find(name) != std::string::npos;
      outcome.result.text =
          (where.empty() ? "" : where + ": ") + (named ? "" : name + ": ") + outcome.result.text;
      if (first_failure_ == kOk) first_failure_ = outcome.result.code;
      ++failures_;
      Fail(outcome.result);
      return;
    }
    const std::string& format = program_.options.format;
    if (outcome.object != nullptr) revision_ = std::max(revision_, RevisionOf(*outcome.object));
    if (outcome.object != nullptr && format != "table" && format != "name") {
      std::vector<MessagePtr> one;
      one.push_back(std::move(outcome.object));
      if (format == "yaml" && count_ > 1) std::cout << "---\n";
      PrintObjects(program_, kind, one, true);
      return;
    }
    std::cout << name;
    if (format == "table") {
      std::cout << " " << outcome.what
                << (program_.options.write.validate_only ? " (dry run)" : "");
    }
    std::cout << "\n";
  }

  // Returns the exit code for all results; waits for the gateways on request.
  int Finish() {
    if (failures_ != 0) return failures_ == count_ ? first_failure_ : kPartlyFailed;
    if (!query_.wait || program_.options.write.validate_only) return kOk;
    FleetProgress progress;
    const CallResult result = WaitForFleet(program_, revision_, false, progress);
    if (!result.ok()) return Fail(result);
    std::cerr << "applied: " << ProgressText(progress) << "\n";
    return kOk;
  }

 private:
  // A request id cannot stand for several writes.
  WriteOptions Options() {
    WriteOptions options = program_.options.write;
    if (count_ != 0) options.request_id.clear();
    return options;
  }

  std::string WantedEtag(const ObjectInput& input) const {
    if (!query_.etag.empty()) return query_.etag;
    return TextOf(PartOf(*input.object, "meta"), "etag");
  }

  Program& program_;
  const WriteQuery& query_;
  ObjectsClient client_ = program_.objects();
  size_t count_ = 0;
  size_t failures_ = 0;
  ExitCode first_failure_ = kOk;
  int64_t revision_ = 0;
};

enum class Way { kCreate, kApply, kUpdate };

int Write(Program& program, const WriteQuery& query, Way way) {
  std::vector<ObjectInput> inputs;
  const bool words = query.file.empty();
  if (words && query.noun.empty()) {
    return FailUsage("needs KIND NAME FIELD=VALUE ..., or -f FILE");
  }
  if (auto result = words ? ReadWords(query, inputs.emplace_back()) : ReadInputs(query, inputs);
      !result.ok()) {
    return Fail(result);
  }
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Writer writer(program, query);
  for (const ObjectInput& input : inputs) {
    writer.Tell(*input.kind, TextOf(*input.object, "name"), input.where,
                way == Way::kCreate ? writer.Create(input, !words)
                                    : writer.Put(input, !words, way == Way::kApply));
  }
  return writer.Finish();
}

int Delete(Program& program, const WriteQuery& query) {
  std::vector<ObjectInput> inputs;
  std::vector<std::pair<const Kind*, std::string>> targets;
  if (!query.file.empty()) {
    if (auto result = ReadInputs(query, inputs); !result.ok()) return Fail(result);
    // Pools before their tenants.
    for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
      targets.emplace_back(input->kind, TextOf(*input->object, "name"));
    }
  } else {
    const Kind* kind = FindKind(query.noun);
    std::vector<std::string> names = query.words;
    if (kind == nullptr && names.empty()) {
      kind = KindOfName(query.noun);
      names = {query.noun};
    }
    if (kind == nullptr || !kind->writable) {
      return FailUsage("needs KIND NAME ..., or -f FILE; kinds are " + KnownKinds());
    }
    if (names.empty()) return FailUsage("which " + std::string(kind->singular) + "?");
    for (const std::string& text : names) {
      targets.emplace_back(kind, "");
      if (auto result = FullName(*kind, text, query.tenant, targets.back().second); !result.ok()) {
        return Fail(result);
      }
    }
  }
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Writer writer(program, query);
  for (const auto& [kind, name] : targets) {
    writer.Tell(*kind, name, "", writer.Delete(*kind, name, query.etag));
  }
  return writer.Finish();
}

void AddCommon(CLI::App& command, Program& program, WriteQuery& query) {
  command.add_option("-f,--file", query.file, "YAML or JSON documents; -: standard input")
      ->type_name("FILE");
  command.add_flag("--dry-run", program.options.write.validate_only,
                   "have it checked, and change nothing");
  command
      .add_option("--request-id", program.options.write.request_id,
                  "the same again gives the first answer")
      ->type_name("UUID");
  command.add_flag("--wait", query.wait, "until connected gateways run it; --timeout");
}

void AddWords(CLI::App& command, WriteQuery& query, const char* rest) {
  command.add_option("KIND", query.noun, "tenant, pool, ccPolicy, gateway, roleBinding, donor");
  command.add_option("NAME", query.words, rest);
  command.add_option("-t,--tenant", query.tenant, "the tenant of a pool named without")
      ->type_name("TENANT");
}

}  // namespace

void AddWriteCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<WriteQuery>();
  CLI::App* const create = program.Add(
      app, "create", "make an object that is not there yet",
      "  rocegwctl create tenant blue weight=3 quota.peak.qps=5k\n"
      "  rocegwctl create pool blue/web gateways.all=true quota.committed.qps=100\n"
      "  rocegwctl create pool blue/db 'gateways.names=[gateways/host-a]' labels.app=db\n"
      "  rocegwctl create rb alice role=viewer subject=spiffe://rocegw/user/alice\n"
      "  rocegwctl create -f tenant.yaml",
      [&program, query] { return Write(program, *query, Way::kCreate); });
  AddCommon(*create, program, *query);
  AddWords(*create, *query, "then FIELD=VALUE ... (below spec), labels.KEY=VALUE");

  CLI::App* const apply =
      program.Add(app, "apply", "make objects be as documents say",
                  "  rocegwctl apply -f fleet.yaml --dry-run\n"
                  "  rocegwctl apply -f fleet.yaml --wait\n"
                  "  rocegwctl get pools -o yaml | sed 's/slots: 4/slots: 8/' |\n"
                  "      rocegwctl apply -f -\n"
                  "A document:\n"
                  "  name: tenants/blue/pools/web\n"
                  "  meta: {labels: {app: web}}\n"
                  "  spec:\n"
                  "    gateways: {labels: {zone: a}}\n"
                  "    quota: {committed: {qps: 100}, peak: {qps: 5k, registered_bytes: 16GiB}}\n"
                  "What a document does not say stays as it is. A field without value\n"
                  "(weight: null) is taken away. An etag in a document (meta.etag, as get prints\n"
                  "it) must be the object's, so that nobody's change is lost: exit status 4.",
                  [&program, query] {
                    if (query->file.empty()) return FailUsage("apply needs -f FILE");
                    return Write(program, *query, Way::kApply);
                  });
  AddCommon(*apply, program, *query);

  CLI::App* const update =
      program.Add(app, "update", "change fields of an object",
                  "  rocegwctl update pool blue/web quota.peak.qps=10k weight=2\n"
                  "  rocegwctl update tenant blue quota.peak.qps=     (no limit of its own)\n"
                  "  rocegwctl update gateway host-a labels.zone=a\n"
                  "  rocegwctl update donor host-a/donor tenant_bytes=4GiB",
                  [&program, query] { return Write(program, *query, Way::kUpdate); });
  AddCommon(*update, program, *query);
  AddWords(*update, *query, "then FIELD=VALUE ... (below spec), labels.KEY=VALUE");
  update->add_option("--etag", query->etag, "only if the object is still this version")
      ->type_name("ETAG");

  CLI::App* const remove = program.Add(app, "delete", "delete objects",
                                       "  rocegwctl delete pool blue/web blue/db\n"
                                       "  rocegwctl delete -f fleet.yaml --ignore-missing",
                                       [&program, query] { return Delete(program, *query); });
  AddCommon(*remove, program, *query);
  AddWords(*remove, *query, "names");
  remove->add_option("--etag", query->etag, "only if the object is still this version")
      ->type_name("ETAG");
  remove->add_flag("--ignore-missing", query->ignore_missing, "not there: fine");
}

}  // namespace rocegw::cli
