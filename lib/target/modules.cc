#include "target/modules.h"

#include <algorithm>
#include <array>

#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace ktrace::target {

namespace {

constexpr std::uint64_t page = 4096;

std::string key_of(const os::Mapping &m) { return m.device + ":" + std::to_string(m.inode) + ":" + m.path; }

/// Distinguishes two builds of one file that were written over each other, while none is mapped.
std::string state_of(const std::string &path) {
    struct stat st;
    if (::stat(path.c_str(), &st) != 0) return {};
    return ":" + std::to_string(st.st_size) + ":" + std::to_string(st.st_mtim.tv_sec) + "." +
           std::to_string(st.st_mtim.tv_nsec);
}

/// The module that was at this mapping before; its file may have been replaced since.
std::shared_ptr<symbols::Module> still_mapped(const std::vector<LoadedModule> &before, const os::Mapping &mapping) {
    for (const LoadedModule &module : before)
        if (module.start <= mapping.start && mapping.start < module.end && module.file == key_of(mapping))
            return module.module;
    return nullptr;
}

/// The link of the kernel's to what is mapped, which needs CAP_CHECKPOINT_RESTORE.
std::string link_to(Pid pid, const os::Mapping &mapping) {
    std::array<char, 64> range;
    std::snprintf(range.data(), range.size(), "/map_files/%lx-%lx", mapping.start.value, mapping.end.value);
    return os::process_folder(pid) + range.data();
}

/// The device as the maps have it.
std::string device_of(const struct stat &st) {
    std::array<char, 32> numbers;
    std::snprintf(numbers.data(), numbers.size(), "%02x:%02x", major(st.st_dev), minor(st.st_dev));
    return numbers.data();
}

/// Those of `paths` that are the very file that is mapped (not one that an upgrade has put in its place, nor one of
/// another mount namespace, whose file system may number its files alike).
std::vector<std::string> mapped_files(Pid pid, const os::Mapping &mapping, const std::vector<std::string> &paths) {
    struct stat mapped, st;
    bool is_shown = ::stat(link_to(pid, mapping).c_str(), &mapped) == 0;
    std::vector<std::string> same, alike; // some file systems report to stat(2) a device that the maps do not have
    for (const std::string &path : paths) {
        if (::stat(path.c_str(), &st) != 0) continue;
        if (is_shown ? st.st_ino == mapped.st_ino && st.st_dev == mapped.st_dev
                     : st.st_ino == mapping.inode && device_of(st) == mapping.device)
            same.push_back(path);
        else if (!is_shown && st.st_ino == mapping.inode)
            alike.push_back(path);
    }
    return same.empty() ? alike : same;
}

/// The bias that explains this mapping, by the segment that starts in its first page.
std::optional<std::uint64_t> bias_of(const symbols::Module &module, const os::Mapping &mapping) {
    for (const symbols::Segment &segment : module.segments()) {
        if (segment.executable != mapping.executable) continue;
        std::uint64_t first = segment.file_offset & ~(page - 1);
        std::uint64_t last = segment.file_offset + segment.file_size;
        if (mapping.offset < first || mapping.offset >= last) continue;
        return mapping.start.value - ((segment.vaddr & ~(page - 1)) + (mapping.offset - first));
    }
    return std::nullopt;
}

/// Does the loader have it at this bias? Then its first segment is mapped there. Else a program has mapped a part of
/// the file once more by itself (node does so with V8's built-in functions), and its symbols are not there.
bool is_loaded_at(const symbols::Module &module, std::uint64_t bias, const os::Mapping &part,
                  const std::vector<os::Mapping> &maps) {
    if (module.segments().empty()) return false;
    const symbols::Segment &first = *std::min_element(module.segments().begin(), module.segments().end(),
                                                      [](const auto &a, const auto &b) { return a.vaddr < b.vaddr; });
    VirtAddr start{(first.vaddr & ~(page - 1)) + bias};
    return std::any_of(maps.begin(), maps.end(), [&](const os::Mapping &m) {
        return m.start <= start && start < m.end && m.inode == part.inode && m.device == part.device;
    });
}

/// All of the module where a part of it is mapped.
LoadedModule loaded_at(std::shared_ptr<symbols::Module> module, std::uint64_t bias, const os::Mapping &part,
                       const std::string &program) {
    LoadedModule made{module, bias, part.start, part.end, part.path == program, key_of(part)};
    for (const symbols::Segment &segment : module->segments()) {
        made.start = std::min(made.start, VirtAddr{segment.vaddr + bias});
        made.end = std::max(made.end, VirtAddr{segment.vaddr + segment.memory_size + bias});
    }
    return made;
}

std::string program_path(Pid pid) {
    std::array<char, PATH_MAX> buffer;
    ssize_t length = ::readlink((os::process_folder(pid) + "/exe").c_str(), buffer.data(), buffer.size());
    if (length <= 0) return {};
    std::string path(buffer.data(), static_cast<std::size_t>(length));
    constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted)) path.resize(path.size() - deleted.size());
    return path;
}

} // namespace

std::shared_ptr<symbols::Module> ModuleCache::open(Pid pid, const os::Mapping &mapping, std::string &why) {
    std::string proc = os::process_folder(pid);
    std::string root = proc + "/root";
    std::vector<std::string> paths;
    if (!mapping.deleted) paths = mapped_files(pid, mapping, {mapping.path, root + mapping.path});
    auto &cached = modules_[key_of(mapping) + (paths.empty() ? std::string() : state_of(paths.front()))];
    if (cached) return cached;
    paths.push_back(link_to(pid, mapping));
    if (mapping.path == program_path(pid)) paths.push_back(proc + "/exe");
    struct stat own, theirs;
    bool same_root = ::stat("/", &own) == 0 && ::stat((root + "/").c_str(), &theirs) == 0 &&
                     own.st_ino == theirs.st_ino && own.st_dev == theirs.st_dev;
    for (const std::string &path : paths) {
        auto opened = symbols::Module::open(path, mapping.path, same_root ? std::string{} : root);
        if (opened) {
            cached = std::move(*opened);
            return cached;
        }
        why = opened.error().message;
    }
    return nullptr;
}

/// The kernel's own library, by its bytes: most processes have the same.
std::shared_ptr<symbols::Module> ModuleCache::vdso(std::vector<std::byte> image) {
    for (const auto &known : vdsos_)
        if (std::equal(known->image().begin(), known->image().end(), image.begin(), image.end())) return known;
    auto opened = symbols::Module::from_bytes(std::move(image), "[vdso]");
    if (!opened) return nullptr;
    vdsos_.push_back(std::move(*opened));
    return vdsos_.back();
}

/// True where the memory from `at` on, up to a page of it, is what the file has there.
static bool has_code_of(const symbols::Module &module, std::uint64_t bias, VirtAddr at, Memory &memory) {
    if (!module.executable(at.value - bias)) return false;
    std::vector<std::byte> own = module.bytes_at(at.value - bias, page - at.value % page), there(own.size());
    return !own.empty() && memory.read(at, there) == own.size() && own == there;
}

/// Code of a file that its program has put into memory of its own, for huge pages, at the addresses that it had: next
/// to a part of the file that is still mapped (with a gap between them where segments are aligned to more than a page),
/// and with the file's bytes.
std::optional<LoadedModule> ModuleCache::moved_into_memory(Pid pid, const os::Mapping &file, const os::Mapping &code,
                                                           const std::vector<LoadedModule> &before, Memory &memory) {
    const bool can_be = code.executable && code.path.empty() && !file.executable && file.path.starts_with('/');
    if (!can_be) return std::nullopt;
    std::string why;
    std::shared_ptr<symbols::Module> module = still_mapped(before, file);
    if (!module) module = open(pid, file, why);
    const auto bias = module ? bias_of(*module, file) : std::nullopt;
    if (!bias || !has_code_of(*module, *bias, code.start, memory)) return std::nullopt;
    return loaded_at(std::move(module), *bias, file, program_path(pid));
}

std::vector<LoadedModule> ModuleCache::modules_of(Pid pid, const std::vector<os::Mapping> &maps,
                                                  const std::vector<LoadedModule> &before, Memory &memory,
                                                  std::vector<std::string> &unreadable) {
    std::vector<LoadedModule> loaded;
    std::string program = program_path(pid);
    auto extends = [](const LoadedModule &m, const os::Mapping &mapping, std::uint64_t bias) {
        return m.bias == bias && m.start <= mapping.start;
    };
    for (const os::Mapping &mapping : maps) {
        if (!mapping.executable) continue;
        std::shared_ptr<symbols::Module> module;
        if (mapping.path == "[vdso]") {
            std::vector<std::byte> image(mapping.end.value - mapping.start.value);
            image.resize(memory.read(mapping.start, image));
            module = vdso(std::move(image));
            if (!module) continue;
            std::uint64_t first = module->segments().empty() ? 0 : module->segments()[0].vaddr & ~(page - 1);
            loaded.push_back({std::move(module), mapping.start.value - first, mapping.start, mapping.end, false, {}});
            continue;
        }
        if (!mapping.path.starts_with('/')) continue;
        std::string why;
        module = still_mapped(before, mapping);
        if (!module) module = open(pid, mapping, why);
        if (!module) {
            unreadable.push_back(mapping.path + ": " + why);
            continue;
        }
        auto bias = bias_of(*module, mapping);
        if (!bias || !is_loaded_at(*module, *bias, mapping, maps)) continue;
        bool known = std::any_of(loaded.begin(), loaded.end(), [&](const LoadedModule &m) {
            return m.module == module && extends(m, mapping, *bias);
        });
        if (known) continue;
        loaded.push_back(loaded_at(std::move(module), *bias, mapping, program));
    }
    for (std::size_t i = 1; i < maps.size(); ++i) {
        const bool is_behind = maps[i].executable;
        const os::Mapping &code = is_behind ? maps[i] : maps[i - 1], &file = is_behind ? maps[i - 1] : maps[i];
        if (module_at(loaded, code.start) != nullptr) continue;
        if (auto moved = moved_into_memory(pid, file, code, before, memory)) loaded.push_back(std::move(*moved));
    }
    std::stable_sort(loaded.begin(), loaded.end(), [](const auto &a, const auto &b) { return a.start < b.start; });
    std::stable_partition(loaded.begin(), loaded.end(), [](const LoadedModule &m) { return m.is_program; });
    return loaded;
}

bool LoadedModule::holds(VirtAddr at) const {
    if (at < start || at >= end) return false;
    const std::uint64_t vaddr = at.value - bias;
    return std::any_of(module->segments().begin(), module->segments().end(), [&](const symbols::Segment &segment) {
        const std::uint64_t first = segment.vaddr & ~(page - 1);
        return first <= vaddr && vaddr < ((segment.vaddr + segment.memory_size + page - 1) & ~(page - 1));
    });
}

const LoadedModule *module_at(const std::vector<LoadedModule> &modules, VirtAddr at) {
    for (const LoadedModule &module : modules)
        if (module.holds(at)) return &module;
    return nullptr;
}

} // namespace ktrace::target
