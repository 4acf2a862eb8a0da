#include "os/facts/freezer.h"

#include <algorithm>

#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

/// The next part of a text, up to a separator, which goes, too.
std::string_view take_until(std::string_view &text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

/// Is a word one of a list with commas?
bool lists(std::string_view list, std::string_view word) {
    while (!list.empty())
        if (take_until(list, ',') == word) return true;
    return false;
}

/// Where a file system with groups is mounted, and which of its folders.
struct Mount {
    std::string_view root, point;
    bool legacy = false;
};

std::optional<Mount> parse_mount(std::string_view line) {
    constexpr std::string_view before_type = " - ";
    const std::size_t dash = line.find(before_type);
    if (dash == std::string_view::npos) return std::nullopt;
    std::string_view after = line.substr(dash + before_type.size());
    const std::string_view type = take_until(after, ' ');
    take_until(after, ' '); // the source
    const bool legacy = type == "cgroup" && lists(after, "freezer");
    if (!legacy && type != "cgroup2") return std::nullopt;
    for (int i = 0; i < 3; i++) take_until(line, ' '); // two ids, a device
    Mount mount{take_until(line, ' '), {}, legacy};
    mount.point = take_until(line, ' ');
    return mount;
}

/// The group and all above it in a mount, which may show a part of the groups only.
void add_freezers(std::vector<Freezer> &freezers, const Mount &mount, std::string_view group) {
    const std::string_view root = mount.root == "/" ? "" : mount.root;
    if (!group.starts_with(root) || group.starts_with("/..")) return; // outside of what is to be seen
    group.remove_prefix(root.size());
    if (!group.empty() && group.front() != '/') return;
    while (group.size() > 1) {
        freezers.push_back({std::string(mount.point) + std::string(group), mount.legacy});
        group = group.substr(0, group.rfind('/'));
    }
    if (!root.empty()) freezers.push_back({std::string(mount.point), mount.legacy});
}

} // namespace

std::string Freezer::thawing() const {
    return legacy ? "echo THAWED > " + folder + "/freezer.state" : "echo 0 > " + folder + "/cgroup.freeze";
}

std::vector<Freezer> parse_freezers(std::string_view groups, std::string_view mounts) {
    std::optional<std::string_view> unified, legacy;
    while (!groups.empty()) {
        std::string_view group = take_until(groups, '\n');
        const bool is_unified = take_until(group, ':') == "0";
        const std::string_view controllers = take_until(group, ':');
        if (is_unified) unified = group;
        if (lists(controllers, "freezer")) legacy = group;
    }
    std::vector<Freezer> freezers;
    while (!mounts.empty()) {
        auto mount = parse_mount(take_until(mounts, '\n'));
        if (const auto &group = mount && mount->legacy ? legacy : unified; mount && group)
            add_freezers(freezers, *mount, *group);
    }
    return freezers;
}

std::optional<Freezer> frozen_by(Pid pid) {
    auto groups = read_file("/proc/" + std::to_string(pid.value) + "/cgroup");
    auto mounts = groups ? read_file("/proc/self/mountinfo") : std::nullopt;
    if (!mounts) return std::nullopt;
    for (const Freezer &freezer : parse_freezers(*groups, *mounts)) {
        const char *file = freezer.legacy ? "/freezer.self_freezing" : "/cgroup.freeze";
        if (read_setting(freezer.folder + file).value_or(0) == 1) return freezer;
    }
    return std::nullopt;
}

} // namespace ktrace::os
