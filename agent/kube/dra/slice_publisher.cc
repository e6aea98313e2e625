// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/slice_publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "agent/kube/dra/allocated_claim.h"
#include "agent/kube/dra/quantity.h"
#include "agent/kube/dra/resource_slices.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kJson[] = "application/json";

// Returns our slices by name; slices of others are ignored.
std::map<std::string, json> OwnOf(const json& list, const std::string& node) {
  std::map<std::string, json> own;
  if (!list.is_object() || !list.contains("items")) return own;
  for (const json& slice : list["items"]) {
    const json::json_pointer driver("/spec/driver");
    const json::json_pointer name("/spec/nodeName");
    if (!slice.contains(driver) || !slice.contains(name)) continue;
    if (slice.at(driver) == kDraDriver && slice.at(name) == node)
      own[slice["metadata"].value("name", "")] = slice;
  }
  return own;
}

int64_t GenerationOf(const json& slice) {
  const json::json_pointer at("/spec/pool/generation");
  return slice.contains(at) && slice.at(at).is_number_integer() ? slice.at(at).get<int64_t>() : 0;
}

// Returns true if `found` contains everything that was written; the API server adds defaults.
bool Holds(const json& found, const json& wanted) {
  if (wanted.is_object()) {
    return found.is_object() && std::ranges::all_of(wanted.items(), [&](const auto& field) {
             return found.contains(field.key()) && Holds(found[field.key()], field.value());
           });
  }
  if (wanted.is_array()) {
    if (!found.is_array() || found.size() != wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!Holds(found[i], wanted[i])) return false;
    return true;
  }
  if (found == wanted) return true;
  if (!found.is_string() || !wanted.is_string()) return false;
  // The API server may write "1000" as "1k".
  const auto amount = ParseQuantity(wanted.get<std::string>());
  return amount && amount == ParseQuantity(found.get<std::string>());
}

}  // namespace

SlicePublisher::SlicePublisher(ControlLoop& loop, kubeapi::ApiServer& api, std::string node,
                               ClaimCounters& counters, std::function<void()> sharing_lost,
                               PublisherPace pace)
    : loop_(loop),
      api_(api),
      node_(std::move(node)),
      counters_(counters),
      sharing_lost_(std::move(sharing_lost)),
      pace_(pace) {}

SlicePublisher::~SlicePublisher() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void SlicePublisher::Set(std::vector<json> devices) {
  if (wanted_ == devices) return;
  const bool first = !wanted_.has_value();
  wanted_ = std::move(devices);
  if (busy_) {
    again_ = true;
  } else {
    At(first ? Milliseconds(0) : pace_.settle);
  }
}

void SlicePublisher::Look() {
  if (busy_) {
    again_ = true;
  } else if (wanted_) {
    At(Milliseconds(0));
  }
}

void SlicePublisher::At(Duration wait) {
  loop_.Cancel(timer_);
  timer_ = loop_.At(ControlLoop::Now() + wait, [this] {
    timer_ = 0;
    Begin();
  });
}

void SlicePublisher::Call(kubeapi::HttpRequest request, Answered answered) {
  api_.Call(std::move(request), [&loop = loop_, answered = std::move(answered),
                                 alive = alive_](const StatusOr<kubeapi::ApiAnswer>& answer) {
    (void)loop.Post([answered, alive, answer] {
      if (*alive) answered(answer);
    });
  });
}

void SlicePublisher::Begin() {
  if (busy_) return;
  busy_ = true;
  again_ = false;
  if (!node_uid_.empty()) {
    return Call({"GET",
                 std::string(kSlices) + "?fieldSelector=spec.driver%3D" + kDraDriver +
                     ",spec.nodeName%3D" + node_,
                 "", ""},
                [this](const auto& answer) { OnList(answer); });
  }
  Call({"GET", "/api/v1/nodes/" + node_, "", ""}, [this](const auto& answer) { OnNode(answer); });
}

void SlicePublisher::OnNode(const StatusOr<kubeapi::ApiAnswer>& answer) {
  if (!answer.ok()) return End(answer.status().text());
  const json::json_pointer uid("/metadata/uid");
  const json& object = answer.value().object;
  if (!object.contains(uid) || !object.at(uid).is_string())
    return End("the API server's node has no uid");
  node_uid_ = object.at(uid).get<std::string>();
  busy_ = false;
  Begin();
}

json SlicePublisher::SliceNamed(const std::string& name, const json& spec) const {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"name", name},
            // A removed node takes its slices with it.
            {"ownerReferences",
             {{{"apiVersion", "v1"},
               {"kind", "Node"},
               {"name", node_},
               {"uid", node_uid_},
               {"controller", true}}}}}},
          {"spec", spec}};
}

void SlicePublisher::OnList(const StatusOr<kubeapi::ApiAnswer>& answer) {
  if (!answer.ok() && answer.status().error() == ENOENT) {
    return End(
        "this API server has no resource.k8s.io/v1: claims need Kubernetes 1.34 or later; "
        "the pools of kubernetes.dra are offered to nobody");
  }
  if (!answer.ok()) return End(answer.status().text());
  std::map<std::string, json> found = OwnOf(answer.value().object, node_);
  int64_t newest = 0;
  for (const auto& [name, slice] : found) newest = std::max(newest, GenerationOf(slice));
  const auto name_of = [&](size_t i) { return node_ + "-" + kDraDriver + "-" + std::to_string(i); };
  const auto same = [&](const std::vector<json>& specs) {
    if (found.size() != specs.size()) return false;
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto known = found.find(name_of(i));
      if (known == found.end() || !Holds(known->second["spec"], specs[i])) return false;
    }
    return true;
  };
  if (same(SlicesOf(*wanted_, node_, newest))) return End("");
  const std::vector<json> specs = SlicesOf(*wanted_, node_, newest + 1);
  auto changes = std::make_shared<std::vector<kubeapi::HttpRequest>>();
  for (size_t i = 0; i < specs.size(); ++i) {
    json slice = SliceNamed(name_of(i), specs[i]);
    const auto known = found.find(name_of(i));
    if (known == found.end()) {
      changes->push_back({"POST", kSlices, kJson, slice.dump()});
      continue;
    }
    slice["metadata"]["resourceVersion"] = known->second["metadata"].value("resourceVersion", "");
    changes->push_back({"PUT", std::string(kSlices) + "/" + name_of(i), kJson, slice.dump()});
    found.erase(known);
  }
  // Superfluous slices are deleted last: by then the new generation is complete.
  for (const auto& [name, slice] : found)
    changes->push_back({"DELETE", std::string(kSlices) + "/" + name, "", ""});
  Write(std::move(changes), 0);
}

void SlicePublisher::Write(std::shared_ptr<std::vector<kubeapi::HttpRequest>> changes, size_t at) {
  if (at == changes->size()) {
    spdlog::info("published {} devices of node {}", wanted_->size(), node_);
    return End("");
  }
  Call((*changes)[at], [this, changes, at](const StatusOr<kubeapi::ApiAnswer>& answer) {
    const bool gone = (*changes)[at].method == "DELETE" && answer.status().error() == ENOENT;
    if (!answer.ok() && !gone) return End(answer.status().text());
    if (answer.ok()) OnWritten(answer.value().object);
    Write(changes, at + 1);
  });
}

void SlicePublisher::OnWritten(const json& slice) {
  const json::json_pointer at("/spec/devices");
  if (!slice.is_object() || !slice.contains(at) || !wanted_) return;
  const bool shared = std::ranges::any_of(
      *wanted_, [](const json& device) { return device.contains("allowMultipleAllocations"); });
  const json& kept = slice.at(at);
  if (!shared || kept.empty()) return;
  // An API server without the field drops it silently.
  if (std::ranges::none_of(
          kept, [](const json& device) { return device.contains("allowMultipleAllocations"); })) {
    sharing_lost_();
  }
}

void SlicePublisher::End(const std::string& problem) {
  busy_ = false;
  counters_.published = problem.empty() && !again_;
  if (counters_.published) counters_.devices = wanted_->size();
  if (std::exchange(problem_, problem) != problem && !problem.empty())
    spdlog::warn("devices of this node are not published: {}", problem);
  At(again_ ? pace_.settle : problem.empty() ? pace_.look : pace_.retry);
}

}  // namespace rocegw::agent
