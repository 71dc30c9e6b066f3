/* A stand-in for what make viewer makes: tests of kiln-export --format html that need no browser have it inside their pages. */
document.getElementById('viewer').textContent = 'a stand-in';
