// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/api.md: services, methods and messages of the API with their comments,
// rules and roles, from the protos. Usage: api_doc DESCRIPTORS (a FileDescriptorSet with source
// info, as protoc writes it)
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/model/access.h"

namespace rocegw::model {
namespace {

namespace pb = google::protobuf;

constexpr char kIntroduction[] =
    R"(<!-- Made by scripts/update_api_doc; edit the comments in proto/ instead. -->
# API

gRPC, in the packages below: `admin` for operators and tenants, `fleet` for agents and for controllers among each other,
both served by the controller; `gateway`, served by each gateway on its unix socket, whose file mode and owner decide
who may call; `types`, which the others share. Health (`grpc.health.v1`) and reflection are served too.

What holds for all methods of the controller:

- **Deadline.** A call that is not a stream needs one, of at most 60 s.
- **Who calls** is the URI name of the client's certificate; what it may do, its role bindings say. *who* names the
  roles that have a method's permission; for those in brackets a binding to the tenant that the resource belongs to is
  enough.
- **Rules of fields** are checked before anything happens. What breaks one, and a field that this version does not know,
  is refused with INVALID_ARGUMENT and named.
- **Writes** take a `request_id`: repeated within a day, the call gives the first one's answer and changes nothing.
  `validate_only` checks everything and changes nothing. An `etag` makes a write conditional.
- **Updates** take the fields that `update_mask` names.
- **Lists** come in pages of one revision; a **watch** from the next revision misses nothing.
- **Errors** carry `google.rpc.ErrorInfo` with domain `rocegw.io` and a reason (`ErrorReason`), and where fields are at
  fault `google.rpc.BadRequest`.
)";

// In the order of the page.
constexpr const char* kFiles[] = {
    "admin/v1/tenants",       "admin/v1/pools",        "admin/v1/cc_policies",
    "admin/v1/gateways",      "admin/v1/operations",   "admin/v1/migrations",
    "admin/v1/upgrades",      "admin/v1/donors",       "admin/v1/role_bindings",
    "fleet/v1/node",          "fleet/v1/donors",       "fleet/v1/replica",
    "gateway/v1/state",       "gateway/v1/debug",      "gateway/v1/config",
    "gateway/v1/identity",    "gateway/v1/take_over",  "types/v1/tenant",
    "types/v1/pool",          "types/v1/cc_policy",    "types/v1/gateway",
    "types/v1/donor",         "types/v1/role_binding", "types/v1/operation",
    "types/v1/metadata",      "types/v1/limits",       "types/v1/push",
    "types/v1/gateway_state", "types/v1/connectivity", "types/v1/reasons",
    "types/v1/annotations"};

// Joins a comment's lines; scripts/lib/wrap_markdown.py wraps the page.
std::string InLine(std::string_view comment) {
  std::istringstream words{std::string(comment)};
  std::string text;
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return text;
}

template <typename Descriptor>
std::string CommentOf(const Descriptor& descriptor) {
  pb::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return {};
  return InLine(location.leading_comments + " " + location.trailing_comments);
}

// Returns the comment above a file's first statement, without its licence.
std::string CommentOf(const pb::FileDescriptorProto& file) {
  for (const auto& location : file.source_code_info().location()) {
    if (location.path_size() != 1 ||
        location.path(0) != pb::FileDescriptorProto::kSyntaxFieldNumber)
      continue;
    const std::string& text = location.leading_comments();
    const size_t licence = text.find("SPDX-License-Identifier");
    return InLine(licence == std::string::npos ? text : text.substr(text.find('\n', licence)));
  }
  return {};
}

std::string ShortName(const std::string& full) {
  constexpr std::string_view kPackage = "rocegw.";
  return full.starts_with(kPackage) ? full.substr(kPackage.size()) : full;
}

std::string TypeOf(const pb::FieldDescriptor& field) {
  if (field.is_map()) {
    return "map<" + TypeOf(*field.message_type()->map_key()) + ", " +
           TypeOf(*field.message_type()->map_value()) + ">";
  }
  std::string type = field.type_name();
  if (field.message_type() != nullptr) type = ShortName(field.message_type()->full_name());
  if (field.enum_type() != nullptr) type = ShortName(field.enum_type()->full_name());
  return (field.is_repeated() ? "repeated "
          : field.has_presence() && field.message_type() == nullptr &&
                  field.real_containing_oneof() == nullptr
              ? "optional "
              : "") +
         type;
}

std::string RulesOf(const pb::FieldDescriptor& field) {
  std::vector<std::string> words;
  if (const auto* oneof = field.real_containing_oneof()) words.push_back("one of " + oneof->name());
  if (field.options().HasExtension(types::v1::field)) {
    const types::v1::FieldRule& rule = field.options().GetExtension(types::v1::field);
    if (rule.required()) words.emplace_back("required");
    if (rule.output_only()) words.emplace_back("written by the controller");
    if (rule.immutable()) words.emplace_back("never changes");
    if (!rule.permission().empty())
      words.push_back("whoever changes it needs " + rule.permission() + " for the fleet");
    if (rule.has_min() && rule.has_max()) {
      words.push_back(std::to_string(rule.min()) + " to " + std::to_string(rule.max()));
    } else if (rule.has_max()) {
      words.push_back("at most " + std::to_string(rule.max()));
    } else if (rule.has_min()) {
      words.push_back("at least " + std::to_string(rule.min()));
    }
    if (rule.has_min_unless_zero())
      words.push_back("0 or at least " + std::to_string(rule.min_unless_zero()));
    if (rule.has_max_length())
      words.push_back("at most " + std::to_string(rule.max_length()) + " bytes");
    if (rule.has_max_items())
      words.push_back("at most " + std::to_string(rule.max_items()) + " elements");
    if (rule.unique_items()) words.emplace_back("no two equal");
    if (rule.format() != types::v1::FORMAT_UNSPECIFIED)
      words.push_back(types::v1::Format_Name(rule.format()));
    if (!rule.resource().empty()) {
      words.push_back("`" + rule.resource() + "`" + (rule.wildcard() ? ", `-` means any" : ""));
    }
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "; ") + word;
  return text;
}

std::string WhoMay(const types::v1::AccessRule& rule) {
  if (rule.scope() == types::v1::OPEN) return "anybody";
  if (rule.scope() == types::v1::GATEWAY) return "the node itself";
  if (rule.scope() == types::v1::CONTROLLER) return "controllers";
  std::string who;
  for (int role = types::v1::Role_MIN; role <= types::v1::Role_MAX; ++role) {
    const auto value = static_cast<types::v1::Role>(role);
    if (!RoleHas(value, rule.permission())) continue;
    std::string name = types::v1::Role_Name(value);
    const bool by_tenant = rule.scope() == types::v1::TENANT &&
                           (value == types::v1::TENANT_ADMIN || value == types::v1::VIEWER);
    // TENANT_ADMIN has no permissions on the fleet.
    if (value == types::v1::TENANT_ADMIN && !by_tenant) continue;
    if (by_tenant) name.insert(0, "(").append(")");
    who += (who.empty() ? "" : ", ") + name;
  }
  return who + "; `" + rule.permission() + "`";
}

void PrintItem(const std::string& name, const std::string& comment) {
  std::printf("- %s%s%s\n", name.c_str(), comment.empty() ? "" : ": ", comment.c_str());
}

void PrintService(const pb::ServiceDescriptor& service) {
  std::printf("\n### %s\n\n%s\n\n", ShortName(service.full_name()).c_str(),
              CommentOf(service).c_str());
  for (int i = 0; i < service.method_count(); ++i) {
    const pb::MethodDescriptor& method = *service.method(i);
    const auto type = [](const pb::Descriptor& message, bool stream) {
      return (stream ? "stream " : "") + ShortName(message.full_name());
    };
    PrintItem("`" + method.name() + "`", CommentOf(method));
    std::printf("  - takes %s, gives %s\n",
                type(*method.input_type(), method.client_streaming()).c_str(),
                type(*method.output_type(), method.server_streaming()).c_str());
    if (const types::v1::AccessRule* rule = RuleOf(method); rule != nullptr)
      std::printf("  - who: %s\n", WhoMay(*rule).c_str());
  }
}

void PrintEnum(const pb::EnumDescriptor& type) {
  std::printf("\n### %s\n\n", ShortName(type.full_name()).c_str());
  if (const std::string comment = CommentOf(type); !comment.empty())
    std::printf("%s\n\n", comment.c_str());
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string comment = CommentOf(*type.value(i));
    PrintItem("`" + type.value(i)->name() + "`",
              comment.empty() && type.value(i)->number() == 0 ? "not given" : comment);
  }
}

void PrintMessage(const pb::Descriptor& message) {
  if (message.options().map_entry()) return;
  // A message that only contains an enumeration appears as its name.
  if (message.field_count() != 0 || message.enum_type_count() == 0) {
    std::printf("\n### %s\n\n", ShortName(message.full_name()).c_str());
    if (const std::string comment = CommentOf(message); !comment.empty())
      std::printf("%s\n\n", comment.c_str());
    if (message.field_count() == 0) std::printf("Nothing in it.\n");
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const pb::FieldDescriptor& field = *message.field(i);
    const std::string rules = RulesOf(field);
    PrintItem(
        "`" + field.name() + "` (" + TypeOf(field) + (rules.empty() ? "" : "; " + rules) + ")",
        CommentOf(field));
  }
  for (int i = 0; i < message.enum_type_count(); ++i) {
    if (message.field_count() == 0) {
      std::printf("\n### %s\n\n%s\n\n", ShortName(message.full_name()).c_str(),
                  CommentOf(message).c_str());
      const pb::EnumDescriptor& type = *message.enum_type(i);
      for (int v = 1; v < type.value_count(); ++v) {
        PrintItem("`" + type.value(v)->name() + "`", CommentOf(*type.value(v)));
      }
    } else {
      PrintEnum(*message.enum_type(i));
    }
  }
  for (int i = 0; i < message.nested_type_count(); ++i) PrintMessage(*message.nested_type(i));
}

void PrintFile(const pb::FileDescriptor& file, const std::string& comment) {
  std::printf("\n## %s\n", ShortName(file.name().substr(0, file.name().rfind('.'))).c_str());
  if (!comment.empty()) std::printf("\n%s\n", comment.c_str());
  for (int i = 0; i < file.service_count(); ++i) PrintService(*file.service(i));
  for (int i = 0; i < file.message_type_count(); ++i) PrintMessage(*file.message_type(i));
  for (int i = 0; i < file.enum_type_count(); ++i) PrintEnum(*file.enum_type(i));
}

int Print(const char* descriptors) {
  std::ifstream stream(descriptors, std::ios::binary);
  pb::FileDescriptorSet set;
  if (!set.ParseFromIstream(&stream)) {
    std::fprintf(stderr, "api_doc: %s: no descriptors\n", descriptors);
    return 1;
  }
  // A file follows those that it imports.
  pb::DescriptorPool pool;
  for (const pb::FileDescriptorProto& file : set.file()) {
    if (pool.BuildFile(file) == nullptr) return 1;
  }
  std::printf("%s", kIntroduction);
  for (const pb::FileDescriptorProto& file : set.file()) {
    const std::string name = file.name().substr(0, file.name().rfind('.'));
    const bool internal = !name.starts_with("rocegw/") || name.starts_with("rocegw/controlplane/");
    const bool listed = std::ranges::any_of(
        kFiles, [&](const char* one) { return name == std::string("rocegw/") + one; });
    if (internal || listed) continue;
    std::fprintf(stderr, "api_doc: %s is in no place of the page\n", name.c_str());
    return 1;
  }
  for (const char* const name : kFiles) {
    const std::string path = std::string("rocegw/") + name + ".proto";
    const auto file = std::ranges::find(set.file(), path, &pb::FileDescriptorProto::name);
    if (file == set.file().end()) return 1;
    PrintFile(*pool.FindFileByName(path), CommentOf(*file));
  }
  return 0;
}

}  // namespace
}  // namespace rocegw::model

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: api_doc DESCRIPTORS\n");
    return 2;
  }
  return rocegw::model::Print(argv[1]);
}
