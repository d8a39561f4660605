//! A simulated disk for tests of power failure. Compiled for tests alone, so that what it unwraps fails a test.
//!
//! Programs read back the live image. A power failure leaves the durable image plus any part of what was not synced:
//! each sector as it was at any moment since the last sync, each size, each name. The simulation covers two more
//! cases. A killed program leaves what it wrote live but not durable. After a failed sync the live image looks
//! unchanged, but the unsynced data never reaches the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::files::{Files, OpenMode, StoreFile};

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub(crate) struct CrashFiles {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Clone)]
struct Disk {
    inodes: Vec<Inode>,
    live: Names,
    durable: Names,
    /// Changes of names, oldest first, that no sync has made durable.
    unsynced: Vec<NameChange>,
    /// Number of file syncs that still succeed; the next one fails and loses its data. `None` for no limit.
    syncs_left: Option<u64>,
    /// Number of changing calls that still succeed before the power is off. `None` for no limit.
    calls_left: Option<u64>,
}

#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

/// A change of a name: `to` appears and `from`, if given, disappears.
#[derive(Clone)]
struct NameChange {
    to: PathBuf,
    from: Option<PathBuf>,
    /// The file that the name refers to; `None` for a folder.
    inode: Option<usize>,
    /// The name `to` disappeared instead.
    is_removal: bool,
}

#[derive(Clone, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Versions of each sector since the last sync, oldest first.
    sectors: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sizes of the file since the last sync, oldest first.
    sizes: Vec<usize>,
}

/// A small random number generator, seeded so that a failing test can be repeated.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`.
    // SOURCE: splitmix64, Steele, Lea and Flood 2014.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

impl CrashFiles {
    /// Creates an empty disk.
    pub(crate) fn new() -> Self {
        Self::holding(Disk {
            inodes: Vec::new(),
            live: Names::default(),
            durable: Names::default(),
            unsynced: Vec::new(),
            syncs_left: None,
            calls_left: None,
        })
    }

    /// Simulates a power failure: returns another disk with what survives. This disk keeps working.
    pub(crate) fn crash(&self, dice: &mut Dice) -> Self {
        let disk = self.lock();
        // The number of changes lost out of ten. Losing nothing and losing everything are cases too.
        let lost = [0, 1, 5, 9, 10][dice.below(5)];
        let mut names = disk.durable.clone();
        for change in &disk.unsynced {
            if dice.below(10) >= lost {
                names.apply(change);
            }
        }
        names.drop_what_has_no_folder();
        let inodes = disk.inodes.iter().map(|inode| Inode::settled(inode.after_crash(lost, dice))).collect();
        let (live, durable) = (names.clone(), names);
        Self::holding(Disk { inodes, live, durable, unsynced: Vec::new(), syncs_left: None, calls_left: None })
    }

    /// Simulates killing the program: returns another disk with the same content, synced or not. This disk keeps
    /// working.
    pub(crate) fn kill(&self) -> Self {
        Self::holding(Disk { syncs_left: None, calls_left: None, ..self.lock().clone() })
    }

    /// Makes every changing call fail after `calls` more of them, so that a later crash hits in the middle of an
    /// operation.
    pub(crate) fn power_off_after(&self, calls: u64) {
        self.lock().calls_left = Some(calls);
    }

    /// Makes one file sync fail after `syncs` more of them. The data it should have synced is never written.
    pub(crate) fn lose_a_sync_after(&self, syncs: u64) {
        self.lock().syncs_left = Some(syncs);
    }

    /// Returns whether the sync chosen by `lose_a_sync_after` has failed by now.
    pub(crate) fn has_lost_a_sync(&self) -> bool {
        self.lock().syncs_left.is_none()
    }

    /// The live content of a file.
    pub(crate) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let disk = self.lock();
        disk.live.files.get(path).map(|inode| disk.inodes[*inode].live.clone())
    }

    fn holding(disk: Disk) -> Self {
        Self { disk: Arc::new(Mutex::new(disk)) }
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }
}

impl Files for CrashFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock();
        disk.step()?;
        let mut above: Vec<&Path> = path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
        above.reverse();
        for folder in above {
            if !disk.live.folders.contains(folder) {
                disk.change(NameChange { to: folder.to_owned(), from: None, inode: None, is_removal: false });
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        let mut disk = self.lock();
        if mode.creates() {
            disk.step()?;
        }
        let inode = match (disk.live.files.get(path), mode.creates()) {
            (Some(_), true) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => *inode,
            (None, true) if disk.live.has_folder_of(path) => {
                disk.inodes.push(Inode::default());
                let inode = disk.inodes.len() - 1;
                disk.change(NameChange { to: path.to_owned(), from: None, inode: Some(inode), is_removal: false });
                inode
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(CrashFile { disk: Arc::clone(&self.disk), inode, writable: mode != OpenMode::Read }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let disk = self.lock();
        let all = disk.live.files.keys().chain(&disk.live.folders);
        let names: BTreeSet<String> = all
            .filter_map(|name| name.strip_prefix(path).ok()?.components().next())
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect();
        Ok(names.into_iter().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.lock();
        disk.step()?;
        let inode = *disk.live.files.get(from).ok_or(io::ErrorKind::NotFound)?;
        if !disk.live.has_folder_of(to) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.change(NameChange {
            to: to.to_owned(),
            from: Some(from.to_owned()),
            inode: Some(inode),
            is_removal: false,
        });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock();
        disk.step()?;
        let inode = *disk.live.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        disk.change(NameChange { to: path.to_owned(), from: None, inode: Some(inode), is_removal: true });
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.lock();
        let disk = &mut *disk;
        disk.step()?;
        let (synced, unsynced) = std::mem::take(&mut disk.unsynced).into_iter().partition(|change| {
            change.to.parent() == Some(path) || change.from.as_ref().is_some_and(|from| from.parent() == Some(path))
        });
        disk.unsynced = unsynced;
        let synced: Vec<NameChange> = synced;
        for change in &synced {
            disk.durable.apply(change);
        }
        Ok(())
    }
}

struct CrashFile {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
    writable: bool,
}

impl CrashFile {
    fn reading<T>(&self, act: impl FnOnce(&Inode) -> T) -> T {
        act(&self.disk.lock().unwrap().inodes[self.inode])
    }

    fn writing(&self, act: impl FnOnce(&mut Inode)) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        disk.step()?;
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        act(&mut disk.inodes[self.inode]);
        Ok(())
    }
}

impl StoreFile for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        Ok(self.reading(|inode| {
            let rest = inode.live.get(start..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        }))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        self.writing(|inode| inode.write(bytes, start))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        disk.step()?;
        let lost = match &mut disk.syncs_left {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        };
        if lost {
            disk.syncs_left = None;
            disk.inodes[self.inode].lose();
            return Err(io::Error::other("an injected lost sync"));
        }
        disk.inodes[self.inode].sync();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.reading(|inode| inode.live.len() as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.writing(|inode| inode.resize(len))
    }
}

impl Disk {
    /// Counts a call that changes something; fails once the power is off.
    fn step(&mut self) -> io::Result<()> {
        match &mut self.calls_left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the power is off")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn change(&mut self, change: NameChange) {
        self.live.apply(&change);
        self.unsynced.push(change);
    }
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change.inode {
            None => drop(self.folders.insert(change.to.clone())),
            Some(_) if change.is_removal => drop(self.files.remove(&change.to)),
            Some(inode) => {
                if let Some(from) = change.from.as_ref().filter(|from| self.files.get(*from) == Some(&inode)) {
                    self.files.remove(from);
                }
                self.files.insert(change.to.clone(), inode);
            }
        }
    }

    fn has_folder_of(&self, path: &Path) -> bool {
        path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || self.folders.contains(folder))
    }

    fn drop_what_has_no_folder(&mut self) {
        let whole = self.clone();
        self.folders.retain(|folder| folder.ancestors().skip(1).all(|above| whole.has_folder_of(above)));
        let kept = self.clone();
        self.files.retain(|file, _| kept.has_folder_of(file));
    }
}

impl Inode {
    /// Creates a file whose live content is durable.
    fn settled(content: Vec<u8>) -> Self {
        Self { live: content.clone(), durable: content, ..Self::default() }
    }

    fn write(&mut self, bytes: &[u8], start: usize) {
        let end = start + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
            self.sizes.push(end);
        }
        self.live[start..end].copy_from_slice(bytes);
        self.note(start, end);
    }

    fn resize(&mut self, len: usize) {
        let old = self.live.len();
        self.live.resize(len, 0);
        self.sizes.push(len);
        self.note(len.min(old), len.max(old));
    }

    /// Records the current content of the sectors between two offsets.
    fn note(&mut self, start: usize, end: usize) {
        for sector in start / SECTOR..end.div_ceil(SECTOR) {
            let from = (sector * SECTOR).min(self.live.len());
            let to = ((sector + 1) * SECTOR).min(self.live.len());
            let mut content = self.live[from..to].to_vec();
            content.resize(SECTOR, 0);
            self.sectors.entry(sector).or_default().push(content);
        }
    }

    fn sync(&mut self) {
        self.after_everything();
        self.sectors.clear();
        self.sizes.clear();
    }

    /// Applies all unsynced versions to the durable image. It does not copy the live image, which may hold data of a
    /// lost sync.
    fn after_everything(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for (sector, versions) in &self.sectors {
            put(&mut self.durable, *sector, versions.last().unwrap());
        }
    }

    /// Loses the pending data, as a failed sync does: the system considers it written. The size is not affected.
    fn lose(&mut self) {
        self.sectors.clear();
    }

    fn after_crash(&self, lost: usize, dice: &mut Dice) -> Vec<u8> {
        let size = match self.sizes.len() {
            count if count > 0 && dice.below(10) >= lost => self.sizes[dice.below(count)],
            _ => self.durable.len(),
        };
        let mut content = self.durable.clone();
        content.resize(size, 0);
        for (sector, versions) in &self.sectors {
            if dice.below(10) >= lost {
                put(&mut content, *sector, &versions[dice.below(versions.len())]);
            }
        }
        content
    }
}

/// Copies a sector to its place, as far as the file reaches.
fn put(content: &mut [u8], sector: usize, bytes: &[u8]) {
    let start = (sector * SECTOR).min(content.len());
    let end = (start + SECTOR).min(content.len());
    content[start..end].copy_from_slice(&bytes[..end - start]);
}

/// Size of a sector, which a disk writes entirely or not at all, in bytes.
const SECTOR: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "file";

    fn made() -> (CrashFiles, Arc<dyn StoreFile>) {
        let disk = CrashFiles::new();
        let file = disk.open(Path::new(FILE), OpenMode::Create).unwrap();
        (disk, file)
    }

    /// The different contents of the file after a hundred simulated power failures.
    fn left(disk: &CrashFiles) -> BTreeSet<Option<Vec<u8>>> {
        (0..100).map(|seed| disk.crash(&mut Dice::new(seed)).content(Path::new(FILE))).collect()
    }

    #[test]
    fn what_was_synced_is_all_that_is_left_for_certain() {
        let (disk, file) = made();
        disk.sync_dir(Path::new("")).unwrap();
        file.write_at(&[1; 2 * SECTOR], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(left(&disk), BTreeSet::from([Some(vec![1; 2 * SECTOR])]));
        file.write_at(&[2; 2 * SECTOR], 0).unwrap();
        let mixed = |first: u8, second: u8| Some([[first; SECTOR], [second; SECTOR]].concat());
        assert_eq!(left(&disk), BTreeSet::from([mixed(1, 1), mixed(1, 2), mixed(2, 1), mixed(2, 2)]));
        file.sync_data().unwrap();
        assert_eq!(left(&disk), BTreeSet::from([mixed(2, 2)]));
    }

    #[test]
    fn within_a_sector_nothing_is_reordered() {
        let (disk, file) = made();
        disk.sync_dir(Path::new("")).unwrap();
        file.write_at(&[0; 4], 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&[1], 0).unwrap();
        file.write_at(&[1], 1).unwrap();
        let found = left(&disk);
        assert_eq!(found, BTreeSet::from([Some(vec![0, 0, 0, 0]), Some(vec![1, 0, 0, 0]), Some(vec![1, 1, 0, 0])]));
    }

    #[test]
    fn a_size_may_be_on_disk_before_its_content_and_vice_versa() {
        let (disk, file) = made();
        disk.sync_dir(Path::new("")).unwrap();
        file.write_at(&[1; SECTOR], 0).unwrap();
        assert_eq!(left(&disk), BTreeSet::from([Some(Vec::new()), Some(vec![0; SECTOR]), Some(vec![1; SECTOR])]));
        file.sync_data().unwrap();
        file.set_len(0).unwrap();
        assert!(left(&disk).contains(&Some(Vec::new())) && left(&disk).contains(&Some(vec![1; SECTOR])));
    }

    #[test]
    fn a_name_may_be_gone_until_its_folder_is_synced() {
        let (disk, file) = made();
        file.write_at(&[1], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(left(&disk), BTreeSet::from([None, Some(vec![1])]));
        disk.sync_dir(Path::new("")).unwrap();
        assert_eq!(left(&disk), BTreeSet::from([Some(vec![1])]));

        let next = disk.open(Path::new("next"), OpenMode::Create).unwrap();
        next.write_at(&[2], 0).unwrap();
        next.sync_data().unwrap();
        disk.rename(Path::new("next"), Path::new(FILE)).unwrap();
        assert_eq!(left(&disk), BTreeSet::from([Some(vec![1]), Some(vec![2])]));
        disk.sync_dir(Path::new("")).unwrap();
        assert_eq!(left(&disk), BTreeSet::from([Some(vec![2])]));
    }

    #[test]
    fn a_file_goes_with_its_folder() {
        let disk = CrashFiles::new();
        disk.create_dir(Path::new("folder")).unwrap();
        disk.open(Path::new("folder/file"), OpenMode::Create).unwrap();
        disk.sync_dir(Path::new("folder")).unwrap();
        let there = |seed| disk.crash(&mut Dice::new(seed)).content(Path::new("folder/file")).is_some();
        assert!((0..100).any(there) && !(0..100).all(there));
        disk.sync_dir(Path::new("")).unwrap();
        assert!((0..100).all(there));
    }

    #[test]
    fn a_killed_program_leaves_its_writes_live_and_not_durable() {
        let (disk, file) = made();
        disk.sync_dir(Path::new("")).unwrap();
        file.write_at(&[1], 0).unwrap();
        let killed = disk.kill();
        file.write_at(&[2], 0).unwrap();
        assert_eq!(killed.content(Path::new(FILE)), Some(vec![1]));
        assert!(left(&killed).contains(&Some(Vec::new())));
    }

    #[test]
    fn data_of_a_failed_sync_is_read_back_and_never_on_disk() {
        let (disk, file) = made();
        disk.sync_dir(Path::new("")).unwrap();
        disk.lose_a_sync_after(1);
        file.write_at(&[1; SECTOR], 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&[2; SECTOR], 0).unwrap();
        assert!(!disk.has_lost_a_sync() && file.sync_data().is_err() && disk.has_lost_a_sync());
        file.sync_data().unwrap();
        assert_eq!(disk.content(Path::new(FILE)), Some(vec![2; SECTOR]));
        assert_eq!(left(&disk), BTreeSet::from([Some(vec![1; SECTOR])]));
    }
}
